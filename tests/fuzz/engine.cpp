// SPDX-License-Identifier: BSD-3-Clause
// A small fuzzer for what reads files: it changes inputs of a corpus at random, keeps in memory those that reach code
// that none before has reached, and goes on from them. The target is the function that libFuzzer calls, too, so that
// either engine can be linked to it; this one wants nothing but g++, whose -fsanitize-coverage=trace-pc tells the way.
//
//   fuzz_mtx [--executions N] [--seed S] [--save FOLDER] CORPUS…       the same arguments make the same inputs
//
// The inputs are run in a child, the one at work lies in memory that both see: however the child dies, by a sanitizer,
// an exception, a signal, or because a minute went by on one input, the parent writes that input to a file and fails.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <new>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern const std::vector<std::string> fuzz_words;  // what the format is made of

// A target allocates no more than a file of its size may ask for: a larger piece of memory is a finding.
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=256:allocator_may_return_null=0";
}

namespace {

constexpr size_t largest = 1 << 16, map_size = 1 << 14;
alignas(
    8) uint8_t reached[map_size];  // how often each step from one place of the code to another was made by this input
thread_local uintptr_t place;

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  ++reached[(here ^ place) % map_size];
  place = (here * 0x9E3779B97F4A7C15U) >> 40;
}

namespace {

// What parent and child share.
struct Shared {
  std::atomic<uint64_t> executions = 0, kept = 0;
  std::atomic<size_t> size = 0;
  uint8_t data[largest] = {};
};

struct Options {
  uint64_t executions = 100'000, seed = 1;
  std::string save;
  std::vector<std::string> corpus;
};

class Mutator {
 public:
  explicit Mutator(uint64_t seed) : random_(seed) {}
  size_t below(size_t n) { return n ? random_() % n : 0; }

  std::string changed(std::string text, const std::vector<std::string>& pool) {
    for (size_t k = 1 + below(below(4) ? 3 : 12); k-- > 0;) change(text, pool);
    if (text.size() > largest) text.resize(largest);
    return text;
  }

 private:
  void change(std::string& text, const std::vector<std::string>& pool) {
    const size_t at = below(text.size() + 1), length = std::min(1 + below(below(8) ? 8 : 200), text.size() - at);
    switch (below(10)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      case 2:
        text.insert(at, 1 + below(4), static_cast<char>(below(256)));
        break;
      case 3:
        text.erase(at, length);
        break;
      case 4:
        text.insert(below(text.size() + 1), text.substr(at, length));
        break;
      case 5:
        text.replace(at, length, fuzz_words[below(fuzz_words.size())]);
        break;
      case 6:
        text.insert(at, fuzz_words[below(fuzz_words.size())]);
        break;
      case 7:
        number(text, at);
        break;
      case 8:
        little_endian(text, at);
        break;
      default: {
        const std::string& other = pool[below(pool.size())];
        text = text.substr(0, at) + other.substr(below(other.size() + 1));
      }
    }
  }

  // Another number in place of a written one.
  void number(std::string& text, size_t at) {
    const size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    const size_t end = std::min(text.find_first_not_of("0123456789", begin), text.size());
    static const std::string odd[] = {"0",
                                      "-1",
                                      "1",
                                      "2147483647",
                                      "2147483648",
                                      "4294967296",
                                      "1000000000",
                                      "1e999",
                                      "9223372036854775807",
                                      "18446744073709551616",
                                      "1e-400",
                                      "nan",
                                      "1152921504606846976"};
    const std::string other = below(2) ? odd[below(std::size(odd))] : std::to_string(below(12));
    text.replace(begin, end - begin, other);
  }

  // The same for one in two, four or eight bytes.
  void little_endian(std::string& text, size_t at) {
    static const uint64_t odd[] = {0, 1, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFFFFFFE, 0x100000000, ~0ULL >> 1, ~0ULL};
    const size_t bytes = size_t{2} << below(3);
    if (text.size() < bytes) return;
    uint64_t value = 0;
    at = std::min(at, text.size() - bytes);
    std::memcpy(&value, text.data() + at, bytes);
    value = below(2) ? odd[below(std::size(odd))] : value + below(33) - 16;
    std::memcpy(text.data() + at, &value, bytes);
  }

  std::mt19937_64 random_;
};

// Whether the input took a step that none before has taken, or took one more often: by powers of two.
bool is_new(std::vector<uint8_t>& seen) {
  bool result = false;
  for (size_t k = 0; k < map_size; ++k) {
    uint64_t eight = 0;  // most places are not reached: eight at once
    if (k % 8 == 0) std::memcpy(&eight, reached + k, 8);
    if (k % 8 == 0 && eight == 0) k += 7;
    if (!reached[k]) continue;
    const auto often = static_cast<uint8_t>(1 << (31 - __builtin_clz(reached[k])));
    result |= (seen[k] & often) == 0;
    seen[k] |= often;
  }
  return result;
}

void run(const std::string& input, Shared& shared) {
  std::memset(reached, 0, sizeof reached);
  place = 0;
  shared.size = input.size();
  std::memcpy(shared.data, input.data(), input.size());
  const std::vector<uint8_t> exactly(input.begin(),
                                     input.end());  // no room behind it: the sanitizer sees a step too far
  LLVMFuzzerTestOneInput(exactly.data(), exactly.size());
  ++shared.executions;
}

std::vector<std::string> inputs_of(const std::vector<std::string>& folders) {
  std::vector<std::filesystem::path> files;
  for (const auto& folder : folders)
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    inputs.back().resize(std::min(inputs.back().size(), largest));
  }
  if (inputs.empty()) inputs.emplace_back();
  return inputs;
}

int child(const Options& options, Shared& shared) {
  std::vector<std::string> pool = inputs_of(options.corpus);
  std::vector<uint8_t> seen(map_size);
  for (const auto& input : pool) {
    run(input, shared);
    is_new(seen);
  }
  Mutator mutator(options.seed);
  while (shared.executions < options.executions) {
    std::string input = mutator.changed(pool[mutator.below(pool.size())], pool);
    run(input, shared);
    if (!is_new(seen)) continue;
    if (!options.save.empty())
      std::ofstream(options.save + "/" + std::to_string(shared.kept), std::ios::binary) << input;
    ++shared.kept;
    if (input.size() <= 4096) pool.push_back(std::move(input));
  }
  return 0;
}

// The status of the child; a minute without an execution ends it.
int watch(pid_t worker, const Shared& shared) {
  int status = 0;
  uint64_t before = 0;
  for (int idle = 0; ::waitpid(worker, &status, WNOHANG) == 0; ::usleep(100'000)) {
    idle = shared.executions == before ? idle + 1 : 0;
    before = shared.executions;
    if (idle > 600) ::kill(worker, SIGKILL);
  }
  return status;
}

Options options_of(int count, char** words) {
  Options options;
  for (int k = 1; k < count; ++k) {
    const std::string word = words[k];
    if (!word.starts_with("--")) {
      options.corpus.push_back(word);
    } else if (k + 1 < count) {
      const std::string value = words[++k];
      if (word == "--executions") options.executions = std::stoull(value);
      if (word == "--seed") options.seed = std::stoull(value);
      if (word == "--save") options.save = value;
    }
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = options_of(count, words);
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return std::perror("mmap"), 1;
  auto& shared = *new (memory) Shared;
  const auto start = std::chrono::steady_clock::now();
  const pid_t worker = ::fork();
  if (worker == 0) return child(options, shared);
  const int status = watch(worker, shared);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const std::string name = std::filesystem::path(words[0]).filename();
  std::printf("%s: %llu executions in %.0f s, %llu of them new, seed %llu\n", name.c_str(),
              static_cast<unsigned long long>(shared.executions), seconds, static_cast<unsigned long long>(shared.kept),
              static_cast<unsigned long long>(options.seed));
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  const std::string found = name + "_finding";
  std::ofstream(found, std::ios::binary)
      .write(reinterpret_cast<const char*>(shared.data), static_cast<std::streamsize>(shared.size.load()));
  std::printf("%s: the last input is in %s; mend what it shows and keep it in the corpus\n", name.c_str(),
              found.c_str());
  return 1;
}
