# SPDX-License-Identifier: BSD-3-Clause
"""The wheel and the source distribution, as a user gets them: built, looked into, installed in an environment of their
own, and tested there.

The wheel is built where `make` has built, with the same compiler: nothing is compiled a second time. The source
distribution is the same files, of which the same wheel would be built.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

from torch_in_name import sentence, torch_named

ROOT = Path(__file__).parents[2]

SLOPPINESS = "pch_defines,time_macros,include_file_mtime,include_file_ctime"
PROGRAM = """
import gossamer as gs, pathlib, torch
assert pathlib.Path(gs.__file__).is_relative_to({place!r}), gs.__file__
A = gs.poisson(4).requires_grad_()
(A @ torch.ones(4)).sum().backward()
assert A.grad.nnz == 10
prefix = pathlib.Path(gs.cmake_prefix_path)
assert (prefix / "lib/cmake/Gossamer/GossamerConfig.cmake").exists()
assert (prefix / "include/gossamer/gossamer.h").exists()
assert (prefix / "include/gossamer/kernels/spmm.h").exists()
from gossamer import _programs
from gossamer.__main__ import main
place = pathlib.Path(gs.__file__).parent / "programs"
assert _programs.folder() == place
for name in ("report.demo", "bench.__main__", "cases", "examples.learned_jacobi"):
    module = _programs.load(name)
    assert pathlib.Path(module.__file__).is_relative_to(place), module.__file__
assert all((place / "report" / f"page.{{kind}}").exists() for kind in ("html", "css", "js"))
assert main(["demo", "--only", "nothing"]) == 2
"""


def run(*command: str | Path, **environment: str) -> str:
    """What the command prints, if it succeeds. It sees no other Gossamer than the installed one."""
    inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "GOSSAMER_LIBRARY")}
    words = [str(word) for word in command]
    done = subprocess.run(
        words, env={**inherited, **environment}, cwd=ROOT.anchor, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def built_wheel(folder: Path) -> Path:
    """The settings of the compiler cache are those of the Makefile."""
    cache = (ROOT / "build/release/CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)
    assert compiler is not None
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    options = ["--disable-pip-version-check", f"--config-settings=build-dir={ROOT}/build/release", "-w", folder]
    cached = {"CCACHE_BASEDIR": str(ROOT), "CCACHE_NOHASHDIR": "1", "CCACHE_SLOPPINESS": SLOPPINESS}
    run(*pip, *options, ROOT, CMAKE_BUILD_PARALLEL_LEVEL=str(os.cpu_count()), CXX=compiler[1], **cached)
    [wheel] = folder.glob("*.whl")
    return wheel


def assert_metadata(text: str) -> None:
    """What an index shows. It does not know the files beside the README: nothing may lead to them."""
    metadata = message_from_string(text)
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Author"] == "the Gossamer authors"
    assert metadata.get_all("License-File") == ["LICENSE", "licenses/Eigen.txt", "licenses/MPL-2.0.txt"]
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    page = metadata.get_payload()
    assert isinstance(page, str)
    assert page.count("```") == (ROOT / "README.md").read_text().count("```") > 0
    assert [target for target in re.findall(r"\]\(([^)]*)\)", page) if not target.startswith("https://")] == []
    assert "src=" not in page


def assert_wheel(wheel: Path, folder: Path) -> None:
    """It is for every Python, with all that belongs to it and no trace of where it was built."""
    machine = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert re.fullmatch(rf"gossamer_sparse-[\d.]+-py3-none-{machine}\.whl", wheel.name)
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    [metadata] = folder.glob("*.dist-info/METADATA")
    assert_metadata(metadata.read_text())
    for name in ("LICENSE", "licenses/Eigen.txt", "licenses/MPL-2.0.txt"):
        assert (metadata.parent / "licenses" / name).read_bytes() == (ROOT / name).read_bytes()
    assert (folder / "gossamer" / "py.typed").exists()
    for path in folder.rglob("*"):
        assert path.is_dir() or str(ROOT).encode() not in path.read_bytes(), path
    library = folder / "gossamer" / "lib" / "libgossamer.so"
    needed = run("readelf", "--dynamic", library)
    assert "libtorch_cpu.so" in needed
    assert "python" not in needed
    symbols = run("nm", "--dynamic", "--undefined-only", library).split()
    assert any("at4_ops" in name for name in symbols)
    assert [name for name in symbols if re.match("_?Py", name)] == []


def fresh_environment(folder: Path, wheel: Path) -> Path:
    """The python of an environment that has the wheel and, through a path, the packages of this one, but not the .pth
    file by which this one uses the checkout."""
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check"]
    run(*pip, wheel)
    (Path(run(python, "-c", "import site; print(site.getsitepackages()[0])").strip()) / "others.pth").write_text(
        sysconfig.get_path("purelib") + "\n"
    )
    return python


def test_wheel(tmp_path: Path) -> None:
    wheel = built_wheel(tmp_path / "dist")
    assert_wheel(wheel, tmp_path / "unpacked")
    place = tmp_path / "environment"
    python = fresh_environment(place, wheel)
    run(python, "-c", PROGRAM.format(place=str(place)))
    assert "torch: 2.13" in run(place / "bin" / "gossamer", "info")
    tests = run(
        python,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        ROOT / "tests/matrix/test_construct.py",
        GOSSAMER_STANDIN="off",
    )
    assert "passed" in tests
    assert_another_torch_is_refused(tmp_path, run(python, "-c", "import gossamer; print(gossamer.cmake_prefix_path)"))


def assert_another_torch_is_refused(folder: Path, prefix: str) -> None:
    """By find_package(Gossamer) in a C++ user's CMakeLists.txt."""
    torch = torch_named("2.14.0", folder / "torch")
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(P LANGUAGES CXX)\nfind_package(Gossamer REQUIRED)\n"
    )
    command = ["cmake", "-S", folder, "-B", folder / "build", f"-DCMAKE_PREFIX_PATH={prefix.strip()}"]
    done = subprocess.run([*command, f"-DTorch_DIR={torch}"], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"This Gossamer was built with torch 2.13, and the one in {torch} is 2.14.0:" in sentence(done.stderr)


def test_source_distribution(tmp_path: Path) -> None:
    """It holds every file of the repository, as it is: what is built of it is what is built here."""
    program = (
        "import os, sys; os.chdir(sys.argv[1]); from scikit_build_core.build import build_sdist as f; f(sys.argv[2])"
    )
    run(sys.executable, "-c", program, ROOT, tmp_path)
    [archive] = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")
    unpacked = tmp_path / archive.name.removesuffix(".tar.gz")
    tracked = run("git", "-C", ROOT, "ls-files", "-z").split("\0")[:-1]
    assert len(tracked) > 300
    for name in tracked:
        if (ROOT / name).exists():  # it may be about to be deleted
            assert (unpacked / name).read_bytes() == (ROOT / name).read_bytes(), name
    assert_metadata((unpacked / "PKG-INFO").read_text())


def test_fast_math_is_refused(tmp_path: Path) -> None:
    """It would break exp and the rules of NaN in kernels that a program compiles itself."""
    program = tmp_path / "program.cpp"
    program.write_text("#include <gossamer/kernels/softmax.h>\n")
    command = [os.environ.get("CXX", "c++"), "-std=c++20", f"-I{ROOT / 'include'}", "-fsyntax-only", str(program)]
    subprocess.run(command, check=True)
    refused = subprocess.run([*command, "-ffast-math"], capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "compile without -ffast-math" in refused.stderr
