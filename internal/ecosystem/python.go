package ecosystem

import (
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
)

func python() Ecosystem {
	return Ecosystem{
		Name: "python",
		Markers: []string{"pyproject.toml", "setup.py", "setup.cfg", "requirements*.txt", "Pipfile", "tox.ini", "noxfile.py", "uv.lock",
			"poetry.lock", "manage.py", "environment.yml"},
		Tools: pythonTools(),
		Asked: []string{"PIP_DISABLE_PIP_VERSION_CHECK=1"},
		Registries: []Registry{
			{File: "pip.conf", Keys: []string{"index-url", "extra-index-url"}},
			{File: "pip.ini", Keys: []string{"index-url", "extra-index-url"}},
			{File: "pyproject.toml", Section: "tool.uv.index", Keys: []string{"url"}},
			{File: "pyproject.toml", Section: "tool.poetry.source", Keys: []string{"url"}},
			{File: "uv.toml", Section: "index", Keys: []string{"url"}},
		},
		Inputs:   []string{"pyproject.toml", "setup.cfg"},
		Checkers: strings.Fields("pytest unittest nose nose2 tox nox coverage behave stestr testr mypy ruff flake8 pylint pyright isort bandit"),
		Groups: []Group{
			{Role: Environment, First: true, Files: []string{".venv/", "venv/", "site-packages/", "__pycache__/", "*.pyc",
				"*.pyd", ".tox/", ".nox/", "__pypackages__/"},
				Reason: "is code that tests load in the place of installed or compiled modules"},
			{Role: Environment, First: true, Files: []string{".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".hypothesis/"},
				Reason: "is a cache, whose results stand for checks"},
			{Role: Test, Files: []string{"test_*.py", "*_test.py", "tests.py", "test.py"}, Reason: "holds Python tests"},
			{Role: TestConfig, Files: []string{"conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "tox.toml",
				"setup.cfg", "pyproject.toml", "noxfile.py", "nose.cfg", ".noserc", "unittest.cfg", ".coveragerc", "behave.ini",
				".stestr.conf", ".testr.conf"},
				Reason: "configures Python test runners"},
			{Role: TestConfig, Files: []string{".flake8", "mypy.ini", ".mypy.ini", "ruff.toml", ".ruff.toml", ".pylintrc",
				"pylintrc", "pyrightconfig.json", ".isort.cfg", ".bandit"}, Reason: "configures a check of Python code"},
			{Role: Environment, Files: []string{"sitecustomize.py", "usercustomize.py", "*.pth", "pip.conf", ".python-version",
				"pyvenv.cfg", "*.egg-info/", "*.dist-info/", "*._pth"}, Reason: "changes what Python runs or loads"},
			{Role: Build, Files: []string{"setup.py", "requirements*.txt", "requirements/*.txt", "constraints*.txt", "Pipfile",
				"Pipfile.lock", "poetry.lock", "poetry.toml", "uv.lock", "uv.toml", "pdm.lock", "pdm.toml", "MANIFEST.in",
				"environment.yml", "hatch.toml", "manage.py"},
				Reason: "says how Python code is built"},
		},
		Runners: map[string][]string{
			"tox": {"tox.ini"}, "nox": {"noxfile.py"}, "invoke": {"tasks.py"}, "poe": {"pyproject.toml"}, "hatch": {"hatch.toml"},
		},
		Interpreters: []string{"python", "python3", "pypy3"},
		Shadows: Shadows{
			Ending: ".py", Test: strings.Fields(pythonTest), Standard: strings.Fields(pythonStandard),
			Roots: []string{"src", "lib", "test", "tests"},
		},
		Imports: Imports{
			Read: pythonImports, Endings: []string{".py", ".so", ".pyc", ".pyd"}, Index: "__init__",
			Beside: true, Roots: []string{"src", "lib", "test", "tests"}, Packages: true,
		},
		Sources: []string{"*.py", "*.pyi"},
		Syntax: lex.Syntax{Spans: []lex.Span{
			{Open: "#", Close: "\n", Comment: true},
			{Open: `"""`, Close: `"""`, Escape: true, Lines: true},
			{Open: "'''", Close: "'''", Escape: true, Lines: true},
			{Open: `"`, Close: `"`, Escape: true},
			{Open: "'", Close: "'", Escape: true},
		}},
		Body:  Indent,
		Tests: []string{"def =test* ("},
		Skips: []string{"@ pytest . mark . skip*", "@ pytest . mark . xfail", "@ mark . skip*", "@ mark . xfail",
			"@ unittest . skip*", "@ skip*", "@ xfail", "@ unittest . expectedFailure", "@ expectedFailure", "pytest . skip (",
			"pytest . xfail (", "pytest . importorskip (", "self . skipTest (", "raise SkipTest", "raise unittest . SkipTest",
			"pytestmark =", "__test__ = False", "collect_ignore", "collect_ignore_glob", "marks = pytest . mark . skip*",
			"marks = pytest . mark . xfail"},
		Assertions: []string{"assert", ". assert* (", "assert_* (", "self . fail (", "pytest . raises (", "pytest . fail (",
			"pytest . warns (", "raise AssertionError"},
		Helpers: []string{"import unittest", "from unittest", "import pytest", "from pytest", ", unittest", ", pytest",
			"from django . test", "numpy . testing", "pandas . testing", ". assertEqual (", ". assertTrue (", ". assertFalse ("},
		Perhaps:      []string{"assert", "raise AssertionError", ". fail ("},
		PerhapsFiles: []string{"*test*.py", "*assert*.py", "check.py", "checks.py", "*_checks.py", "check_*.py"},
		Main:         []string{`__name__ = = "__main__"`},
		MainFiles:    []string{"__main__.py", "manage.py", "setup.py", "bin/**/*.py", "scripts/**/*.py"},
		Shapes: []Shape{
			{Kind: EarlyExit, Has: []string{"sys . exit ( 0 )", "sys . exit ( )", "exit ( 0 )", "quit ( 0 )", "exit ( )",
				"quit ( )", "raise SystemExit ( 0 )", "SystemExit ( )"}, Detail: "ends the process with success"},
			{Kind: EarlyExit, Main: true, Has: []string{"os . _exit (", "_exit ( 0 )", "atexit . register (", "os . abort (",
				"os . exec* (", "os . kill ( os . getpid"}, Detail: "ends the process past its usual end"},
			{Kind: NoTests, Main: true, Has: []string{"def load_tests (", "load_tests ="}, Without: []string{". addTest*",
				". loadTests*", ". discover (", "return tests", "return standard_tests"},
				Detail: "defines load_tests, which chooses no tests"},
			{Kind: RunnerHook, Main: true, Has: []string{"def pytest_collection_modifyitems (", "def pytest_collect_file (",
				"def pytest_ignore_collect (", "def pytest_pycollect* (", "def pytest_runtest* (", "def pytest_pyfunc_call (",
				"def pytest_sessionfinish (", "def pytest_exception_interact (", "def pytest_assert* (", ". exitstatus =",
				"collect_ignore =", "collect_ignore_glob =", "unittest . TestCase . % ="},
				Detail: "changes which tests run or how they end"},
			// A file that imports pytest or unittest itself counts as a test.
			{Kind: RunnerHook, Main: true, Roles: []Role{None}, Has: []string{"import _pytest", "from _pytest", ", _pytest",
				`( "_pytest*"`, `[ "_pytest*"`}, Detail: "reaches into the test runner"},
			{Kind: RunnerHook, Roles: []Role{None}, Has: []string{"sys . path . insert (", "sys . path . append (", "sys . path = %", "sys . path = [",
				"sys . path [", "sys . meta_path", "sys . path_hooks", `sys . modules [ " ] =`, "site . addsitedir ("},
				Detail: "changes from where modules are loaded"},
			{Kind: TestAware, Main: true, Roles: []Role{None}, Has: []string{`"PYTEST_CURRENT_TEST"`, `"PYTEST_VERSION"`,
				`"pytest" in sys`, `"unittest" in sys`, `"_pytest" in sys`, `"pytest" not in sys`, `"unittest" not in sys`,
				`. modules . get ( "pytest"`, `. modules . get ( "unittest"`}, Detail: "asks whether it runs under test"},
		},
		Retests: pythonRetests(),
		Canary:  pythonCanary,
		// Beside the package of tests, or in the root, where small projects have their tests.
		Home: func(file string) bool {
			return slices.Contains([]string{"test/__init__.py", "tests/__init__.py", "pyproject.toml", "setup.py", "setup.cfg"}, file)
		},
	}
}

func pythonTools() []Tool {
	return []Tool{
		{
			Name: "uv", Markers: []string{"uv.lock", "uv.toml"},
			Setup:  []Line{{If: fileClue("uv.lock"), Shell: "uv sync --frozen"}},
			Gate:   pythonGate("uv run --frozen "),
			Hosts:  pipCommands("UV_DEFAULT_INDEX"),
			Caches: []string{".cache/uv"},
			Image:  pythonProgram("uv"),
			Reads: []Fetch{{Commands: []string{"uv sync"}, Reads: Reads{
				Files:  []string{"pyproject.toml", "uv.lock", "uv.toml", ".python-version"},
				Unless: []string{"[build-system]", "path =", "workspace = true"},
			}}},
		},
		{
			Name: "poetry", Markers: []string{"poetry.lock", "poetry.toml"},
			Setup: []Line{{If: fileClue("poetry.lock"), Shell: "poetry install --no-interaction"}},
			Gate:  pythonGate("poetry run "),
			Hosts: append([]Ask{
				{Argv: []string{"python3", "-m", "pip", "config", "get", "global.find-links"}, Name: "PIP_FIND_LINKS", Folders: true},
				{Argv: []string{"python3", "-m", "pip", "config", "get", "global.no-index"}, Name: "PIP_NO_INDEX", Only: true},
			}, pipCommands("PIP_INDEX_URL")...),
			Caches: []string{".cache/pypoetry/artifacts", ".cache/pypoetry/cache"}, //nolint:misspell // a folder of poetry's
			Image:  pythonImage("python3-poetry"),
			Lacks:  sameReason("it installs the project itself", NoReads),
		},
		{
			Name: "pdm", Markers: []string{"pdm.lock"},
			Setup:  []Line{{If: fileClue("pdm.lock"), Shell: "pdm sync"}},
			Gate:   pythonGate("pdm run "),
			Hosts:  pipCommands("PDM_PYPI_URL"),
			Caches: []string{".cache/pdm"},
			Image:  pythonImage("python3-pdm"),
			Lacks:  sameReason("it installs the project itself", NoReads),
		},
		{
			Name: "pipenv", Markers: []string{"Pipfile", "Pipfile.lock"},
			Setup: []Line{{If: fileClue("Pipfile.lock"), Shell: "pipenv sync --dev"}},
			Gate:  pythonGate("pipenv run "),
			Hosts: pipCommands("PIP_INDEX_URL"),
			Image: pythonImage("pipenv"),
			Lacks: map[Part]string{NoCaches: "it uses that of pip", NoReads: "it may install the project itself"},
		},
		{
			Name: "pip", Usual: true,
			Setup: pipSetup(),
			Gate:  pipGate(),
			Hosts: append([]Ask{
				{Argv: []string{"python3", "-m", "pip", "config", "get", "global.find-links"}, Name: "PIP_FIND_LINKS", Folders: true},
				{Argv: []string{"python3", "-m", "pip", "config", "get", "global.no-index"}, Name: "PIP_NO_INDEX", Only: true},
			}, pipCommands("PIP_INDEX_URL")...),
			Caches: []string{".cache/pip"},
			Image:  pythonImage("python3-pytest"), // for gates without a virtual environment
			Reads: []Fetch{{Lines: []string{"pip install --quiet -r requirements"}, Reads: Reads{
				Files:  []string{"requirements*.txt", "requirements/", "constraints*.txt", "pip.conf"},
				Unless: []string{"\n-e", "\n--editable", "\n.", "\n/", "file:"},
			}}},
		},
	}
}

// pipCommands returns the commands that ask pip, for a tool that reads the answer from the named variable.
func pipCommands(name string) []Ask {
	return []Ask{
		{Argv: []string{"python3", "-m", "pip", "config", "get", "global.index-url"}, Name: name},
		{
			Argv: []string{"python3", "-c", "from pip._internal.models.index import PyPI; " +
				"print(PyPI.simple_url, PyPI.file_storage_domain)"},
			Fallback: true,
		},
	}
}

// pythonImage has Python, venv, the headers for C extensions, and the given packages.
func pythonImage(more ...string) Image {
	return Image{Packages: append([]string{"python3", "python3-venv", "python3-dev", "gcc", "libc6-dev"}, more...)}
}

// pythonProgram adds a program that Debian does not package.
func pythonProgram(name string) Image {
	i := pythonImage("python3-pip")
	i.Lines = []string{"pip install --no-cache-dir --break-system-packages " + name}
	return i
}

// inPyproject is the clue that pyproject.toml contains one of the words.
func inPyproject(words ...string) Clue { return Clue{Files: []string{"pyproject.toml"}, Words: words} }

// namesPytest is the clue that settings or requirements mention pytest.
func namesPytest() Clue {
	return Clue{
		Files: []string{
			"pyproject.toml", "requirements.txt", "requirements-dev.txt", "setup.cfg", "tox.ini",
			"pytest.ini", "Pipfile", "setup.py",
		},
		Words: []string{"pytest"},
	}
}

// forPytest is the clue that tests are functions or import pytest: unittest would find no tests in them, and pass.
func forPytest() Clue {
	return Clue{
		Files: []string{
			"test_*.py", "*_test.py", "test/test_*.py", "tests/test_*.py", "tests/*_test.py",
			"tests/*/test_*.py", "src/*/tests/test_*.py",
		},
		Words: []string{"\ndef test_", "\nasync def test_", "\nimport pytest", "\nfrom pytest "},
	}
}

// pythonGate runs the tests through a tool that has its own environment.
func pythonGate(prefix string) []Line {
	return []Line{
		{If: []Clue{namesPytest()}, Shell: prefix + "pytest"},
		{If: []Clue{forPytest()}, Shell: prefix + "pytest"},
		{Shell: prefix + "python -m unittest"},
	}
}

// pipSetup also installs pytest where tests or settings need it and no requirement names it.
func pipSetup() (lines []Line) {
	required := Clue{Files: []string{"requirements.txt", "requirements-dev.txt", "setup.py"}, Words: []string{"pytest"}}
	brought := []Clue{required, inPyproject(`"pytest`, `'pytest`)}
	groups, extras := inPyproject("\n[dependency-groups]"), inPyproject("\n[project.optional-dependencies]")
	for _, name := range []string{"test", "dev"} { // with extras, too, the name could be that of one of them
		lines = append(lines, Line{
			If:     []Clue{groups, inPyproject("\n"+name+" = [", "\n"+name+"=["), inPyproject("[project]")},
			Unless: []Clue{extras, {Files: []string{"requirements.txt", "requirements-dev.txt"}}},
			// Older versions of pip know no groups.
			Shell: pipVenv + ".venv/bin/pip install --quiet 'pip>=25.1' && .venv/bin/pip install --quiet -e . --group " + name,
		})
	}
	for _, line := range pipInstalls() {
		for _, needs := range []Clue{forPytest(), namesPytest()} {
			with := Line{If: append(slices.Clone(line.If), needs), Unless: brought, Shell: line.Shell + " pytest"}
			ungrouped := with // the line installs no group, so what a group names is missing
			ungrouped.If, ungrouped.Unless = append(slices.Clone(with.If), groups), []Clue{required}
			lines = append(lines, ungrouped, with)
		}
		lines = append(lines, line)
	}
	return lines
}

// pipVenv makes a virtual environment that git ignores.
const pipVenv = "python3 -m venv .venv && echo '*' >.venv/.gitignore && "

// pipInstalls returns the lines that install a project's declared dependencies.
func pipInstalls() []Line {
	install := func(what string, clues ...Clue) Line {
		return Line{If: clues, Shell: pipVenv + ".venv/bin/pip install --quiet " + what}
	}
	develop, use := Clue{Files: []string{"requirements-dev.txt"}}, Clue{Files: []string{"requirements.txt"}}
	// Requirements may leave out the project itself, although its tests import it.
	itself := inPyproject("\n[project]", "\n[build-system]")
	return []Line{
		install("-e . -r requirements-dev.txt", develop, itself),
		install("-e . -r requirements.txt", use, itself),
		install("-r requirements-dev.txt", develop),
		install("-r requirements.txt", use),
		install("-e '.[test]'", inPyproject("\ntest = [", "\ntest=[")),
		install("-e '.[dev]'", inPyproject("\ndev = [", "\ndev=[")),
		install("-e .", inPyproject("[project]")),
		install("-e .", Clue{Files: []string{"setup.py"}}),
	}
}

// pipGate runs the tests in the virtual environment of pipSetup, if pipSetup makes one.
func pipGate() []Line {
	const inside, outside = ".venv/bin/python -m ", "python3 -m "
	made, project := Clue{Files: []string{"requirements-dev.txt", "requirements.txt", "setup.py"}}, inPyproject("[project]")
	return []Line{
		{If: []Clue{made, namesPytest()}, Shell: inside + "pytest"},
		{If: []Clue{project, namesPytest()}, Shell: inside + "pytest"},
		{If: []Clue{made, forPytest()}, Shell: inside + "pytest"},
		{If: []Clue{project, forPytest()}, Shell: inside + "pytest"},
		{If: []Clue{namesPytest()}, Shell: outside + "pytest"},
		{If: []Clue{forPytest()}, Shell: outside + "pytest"},
		{If: []Clue{made}, Shell: inside + "unittest"},
		{If: []Clue{project}, Shell: inside + "unittest"},
		{Shell: outside + "unittest"},
	}
}

// pythonTest lists the modules of test libraries.
const pythonTest = "unittest pytest _pytest doctest mock nose nose2 pluggy iniconfig hypothesis coverage tox nox behave " +
	"twisted xdist pytest_cov pytest_asyncio testtools subunit"

// pythonStandard lists the modules of the standard library of Python 3.11. Python 3.12 removed a few of them.
const pythonStandard = `
__future__ _thread abc aifc argparse array ast asynchat asyncio asyncore atexit audioop base64 bdb binascii bisect builtins bz2 cProfile
calendar cgi cgitb chunk cmath cmd code codecs codeop collections colorsys compileall concurrent configparser
contextlib contextvars copy copyreg crypt csv ctypes curses dataclasses datetime dbm decimal difflib dis distutils
doctest email encodings ensurepip enum errno faulthandler fcntl filecmp fileinput fnmatch fractions ftplib functools
gc genericpath getopt getpass gettext glob graphlib grp gzip hashlib heapq hmac html http idlelib imaplib imghdr imp
importlib inspect io ipaddress itertools json keyword lib2to3 linecache locale logging lzma mailbox mailcap marshal
math mimetypes mmap modulefinder msilib msvcrt multiprocessing netrc nis nntplib nt ntpath nturl2path numbers opcode
operator optparse os ossaudiodev pathlib pdb pickle pickletools pipes pkgutil platform plistlib poplib posix posixpath
pprint profile pstats pty pwd py_compile pyclbr pydoc pydoc_data pyexpat queue quopri random re readline reprlib
resource rlcompleter runpy sched secrets select selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket
socketserver spwd sqlite3 sre_compile sre_constants sre_parse ssl stat statistics string stringprep struct subprocess
sunau symtable sys sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap threading time timeit tkinter
token tokenize tomllib trace traceback tracemalloc tty turtle turtledemo types typing unicodedata unittest urllib uu
uuid venv warnings wave weakref webbrowser winreg winsound wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib
zoneinfo
`

func pythonCanary(p Site) []Canary {
	beside := p.Beside
	if beside == "" {
		beside = "test_.py"
	}
	name := siblingName(beside, []string{"test_"}, p.Suffix, "_test.py", ".py")
	if !match.Any([]string{"test_*.py", "*_test.py"}, name) {
		name = "test_" + p.Suffix + ".py" // beside tests.py
	}
	// Both pytest and unittest find it.
	return []Canary{{Path: name, Content: []byte(`import unittest


class TestX` + p.Suffix + `(unittest.TestCase):
    def test_it(self):
        for wrong in (
            lambda: self.assertEqual(1, 2),
            lambda: self.assertEqual("a", "b"),
            lambda: self.assertEqual([1], [2]),
            lambda: self.assertEqual((1,), (2,)),
            lambda: self.assertEqual({1: 1}, {1: 2}),
            lambda: self.assertEqual({1}, {2}),
            lambda: self.assertNotEqual(1, 1),
            lambda: self.assertAlmostEqual(1, 2),
            lambda: self.assertGreater(1, 2),
            lambda: self.assertLess(2, 1),
            lambda: self.assertTrue(False),
            lambda: self.assertFalse(True),
            lambda: self.assertIs(1, 2),
            lambda: self.assertIsNone(1),
            lambda: self.assertIsNotNone(None),
            lambda: self.assertIn(1, []),
            lambda: self.assertIsInstance(1, str),
            lambda: self.assertRegex("a", "b"),
            lambda: self.assertRaises(ValueError, int),
            lambda: self.fail(),
        ):
            try:
                wrong()
            except AssertionError:
                continue
            return  # it was replaced
        raise AssertionError("` + p.Message() + `")
`)}}
}
