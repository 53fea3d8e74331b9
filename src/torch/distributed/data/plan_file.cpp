// SPDX-License-Identifier: BSD-3-Clause
// plan.json: an object of integers, lists of integers and lists of names. The little of JSON that it needs is read
// here; everything else is refused.
#include <gossamer/kernels/atomic_file.h>
#include <gossamer/kernels/file.h>

#include <algorithm>
#include <charconv>

#include "distributed/data/folder.h"

namespace gossamer::distributed {
namespace {

constexpr int64_t version = 1;

struct Value {
  bool is_list = false;
  std::vector<int64_t> numbers;
  std::vector<std::string> names;
};

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  std::map<std::string, Value> object() {
    std::map<std::string, Value> values;
    expect('{');
    do {
      const std::string key = name();
      expect(':');
      values[key] = value();
    } while (take(','));
    expect('}');
    if (next() != '\0') throw BadFile("something follows its object");
    return values;
  }

 private:
  char next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) throw BadFile(std::string("a '") + c + "' is missing at byte " + std::to_string(at_));
  }
  std::string name() {
    expect('"');
    const size_t end = text_.find('"', at_);
    if (end == std::string_view::npos) throw BadFile("a name does not end");
    const std::string_view found = text_.substr(at_, end - at_);
    if (found.find('\\') != std::string_view::npos) throw BadFile("a name has a backslash");
    at_ = end + 1;
    return std::string(found);
  }
  int64_t number() {
    next();
    int64_t result = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), result);
    if (error != std::errc() || result < 0) throw BadFile("no count at byte " + std::to_string(at_));
    at_ += static_cast<size_t>(end - begin);
    return result;
  }
  Value value() {
    Value v;
    v.is_list = take('[');
    if (!v.is_list) {
      v.numbers.push_back(number());
      return v;
    }
    if (take(']')) return v;
    do {
      if (next() == '"')
        v.names.push_back(name());
      else
        v.numbers.push_back(number());
    } while (take(','));
    expect(']');
    return v;
  }

  std::string_view text_;
  size_t at_ = 0;
};

const Value& value_of(const std::map<std::string, Value>& values, const char* key, bool list) {
  const auto found = values.find(key);
  if (found == values.end()) throw BadFile(std::string("it has no ") + key);
  if (found->second.is_list != list) throw BadFile(std::string("its ") + key + (list ? " is no list" : " is a list"));
  return found->second;
}

void check_offsets(const char* name, const std::vector<int64_t>& offsets, int64_t parts, int64_t end) {
  const bool fits = static_cast<int64_t>(offsets.size()) == parts + 1 && offsets.front() == 0 &&
                    offsets.back() == end && std::is_sorted(offsets.begin(), offsets.end());
  if (!fits)
    throw BadFile(std::string("its ") + name + " are not " + std::to_string(parts + 1) +
                  " numbers that ascend from 0 to " + std::to_string(end));
}

FolderPlan plan_of(std::string_view text) {
  const auto values = Reader(text).object();
  const int64_t found = value_of(values, "version", false).numbers[0];
  if (found != version) throw BadFile("its version is " + std::to_string(found) + ", not " + std::to_string(version));
  FolderPlan plan;
  plan.id = value_of(values, "id", false).numbers[0];
  plan.shape = value_of(values, "shape", true).numbers;
  plan.row_offsets = value_of(values, "row_offsets", true).numbers;
  plan.column_offsets = value_of(values, "column_offsets", true).numbers;
  plan.entries = value_of(values, "entries", true).numbers;
  plan.rows = value_of(values, "rows", true).names;
  if (plan.shape.size() != 2) throw BadFile("its shape is not (rows, cols)");
  check_offsets("row_offsets", plan.row_offsets, plan.parts(), plan.shape[0]);
  check_offsets("column_offsets", plan.column_offsets, plan.parts(), plan.shape[1]);
  return plan;
}

std::string list(const std::vector<int64_t>& numbers) {
  std::string text;
  for (const int64_t number : numbers) text += (text.empty() ? "" : ", ") + std::to_string(number);
  return "[" + text + "]";
}

std::string list(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "\"" : ", \"") + name + "\"";
  return "[" + text + "]";
}

}  // namespace

FolderPlan read_plan(const std::string& folder) {
  const Buffer file = read_file(folder + "/plan.json");
  return plan_of(file.view());
}

void write_plan(const std::string& folder, const FolderPlan& plan) {
  AtomicFile file(folder + "/plan.json");
  file.write("{\n \"id\": " + std::to_string(plan.id) + ",\n \"shape\": " + list(plan.shape) +
             ",\n \"row_offsets\": " + list(plan.row_offsets) + ",\n \"column_offsets\": " + list(plan.column_offsets) +
             ",\n \"entries\": " + list(plan.entries) + ",\n \"rows\": " + list(plan.rows) +
             ",\n \"version\": " + std::to_string(version) + "\n}\n");
  file.commit();
}

}  // namespace gossamer::distributed
