package suite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/suite"
)

// Each ecosystem with templates runs the tests of one file, from the folder in which its tools run.
func TestRerunOf(t *testing.T) {
	t.Parallel()
	const (
		goTest = "package a\nimport \"testing\"\nfunc TestB(t *testing.T) { t.Fail() }\nfunc TestA(t *testing.T) {\n\tt.Fail()\n}\n"
		method = "package a\nfunc (s *Suite) TestB() { s.Fail() }\n"
		python = "def test_a():\n    assert False\n"
		java   = "class SumTest { @Test void a() { fail(); } }"

		ofGradle = " --no-daemon --no-build-cache -q test --tests SumTest --tests '*.'SumTest"
	)
	for _, c := range []struct {
		file, text, gate string // gate after a bar: the line of setup
		has              string // names of files; after "bare:" without a script, after "unset:" with the script of `npm init`
		want             string // empty: no command is known
	}{
		{"a_test.go", goTest, "go test ./...", "go.mod", "go test -count=1 -run '^(TestA|TestB)$' ."},
		{"in/side/a_test.go", goTest, "make", "go.mod", "go test -count=1 -run '^(TestA|TestB)$' ./in/side"},
		{"in/side/a_test.go", goTest, "make", "go.mod in/go.mod", "cd in && go test -count=1 -run '^(TestA|TestB)$' ./side"},
		{"a b/$(x)'y_test.go", goTest, "make", "go.mod", `go test -count=1 -run '^(TestA|TestB)$' './a b'`},
		{"-x/y_test.go", goTest, "make", "-x/go.mod", `cd ./-x && go test -count=1 -run '^(TestA|TestB)$' .`},
		{"a_test.go", method, "go test ./...", "go.mod", "go test -count=1 -run . ."},
		{"a_test.go", goTest, "go test ./...", "", ""},
		{"sum.test.js", `test("a", () => { throw 1 });`, "npm test", "package.json", "npm test -- sum.test.js"},
		{"packages/core/sum.test.js", `test("a", () => { throw 1 });`, "npm test", "package.json bare:packages/core/package.json", "npm test -- packages/core/sum.test.js"},
		{"packages/core/sum.test.js", `test("a", () => { throw 1 });`, "npm test", "package.json unset:packages/core/package.json", "npm test -- packages/core/sum.test.js"},
		{"packages/core/sum.test.js", `test("a", () => { throw 1 });`, "npx vitest run", "bare:packages/core/package.json", ""},
		{"web/x;y.test.ts", `it("a", () => { throw 1 });`, "make", "package.json web/package.json", "cd web && npm test -- 'x;y.test.ts'"},
		{"sum.test.js", `test("a", () => { throw 1 });`, "node --test", "", "node --test sum.test.js"},
		{"tests/test_a.py", python, "pytest", "", "pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, "make", "", "python3 -m pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, "coverage run -m pytest", "", "python3 -m pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, "PYTHONPATH=src /usr/bin/python3 -W error -m pytest -q", "", "/usr/bin/python3 -m pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, "ruff check && python3.12 -m unittest discover", "", "python3.12 -B -m unittest tests/test_a.py"},
		{"tests/test_a.py", python, "uv run pytest -q", "", "uv run pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, "uv run --frozen --with x python -m pytest", "", "uv run --frozen --with x python -m pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, "poetry run python -m unittest", "", "poetry run python -B -m unittest tests/test_a.py"},
		{"tests/test_a.py", python, ".venv/bin/python -m pytest", "", ".venv/bin/python -m pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, ".venv/bin/pytest tests", "", ".venv/bin/pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, ". venv/bin/activate && pytest", "", "venv/bin/python -m pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, "make|python3 -m venv env && env/bin/pip install -e .", "", "env/bin/python -m pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, "make|uv sync --frozen", "", "uv run python -m pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, "make|poetry install", "", "poetry run python -m pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, ".venv/bin/python -m unittest", "", ".venv/bin/python -B -m unittest tests/test_a.py"},
		{"sub/tests/test_a.py", python, "cd sub && .venv/bin/pytest", "", "cd sub && .venv/bin/pytest -q tests/test_a.py"},
		{"my sub/tests/test_a.py", python, "cd 'my sub' && uv run pytest", "", "cd 'my sub' && uv run pytest -q tests/test_a.py"},
		{"web/tests/test_a.py", python, "cd api && uv run pytest\ncd web && poetry run pytest", "", "cd web && poetry run pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, "cd a && ../.venv/bin/pytest\npytest", "", "pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, "cd a && ../.venv/bin/pytest", "", "python3 -m pytest -q tests/test_a.py"},
		{"sub/tests/test_a.py", python, "cd ./sub/; python3 -m unittest", "", "cd sub && python3 -B -m unittest tests/test_a.py"},
		{"sub/tests/test_a.py", python, "cd sub && pytest", "", "cd sub && pytest -q tests/test_a.py"},
		{"tests/test_a.py", python, "cd sub && .venv/bin/pytest", "", ".venv/bin/pytest -q tests/test_a.py"},
		{"sub/tests/test_a.py", python, "cd .. && .venv/bin/pytest", "", ".venv/bin/pytest -q sub/tests/test_a.py"},
		{"sub/tests/test_a.py", python, "cd $SUB && .venv/bin/pytest", "", ".venv/bin/pytest -q sub/tests/test_a.py"},
		{"tests/test_a.py", python, "python3 -m unittest", "", "python3 -B -m unittest tests/test_a.py"},
		{"crate/tests/it.rs", "#[test]\nfn a() { panic!() }\n", "cargo test", "Cargo.toml crate/Cargo.toml", "cd crate && cargo test --test it"},
		{"src/tests.rs", "#[test]\nfn a() { panic!() }\n", "cargo test", "Cargo.toml", ""},
		{"src/test/java/x/SumTest.java", "class SumTest { @Test void a() { fail(); } }", "mvn test", "pom.xml", "mvn -q -B test -Dtest=SumTest"},
		{"app/src/test/java/x/SumTest.java", java, "mvn test", "pom.xml app/pom.xml", "cd app && mvn -q -B test -Dtest=SumTest"},
		{"src/test/java/x/SumTest.java", java, "make", "pom.xml mvnw", "./mvnw -q -B test -Dtest=SumTest"},
		{"a/b/src/test/java/x/SumTest.java", java, "make", "pom.xml mvnw a/b/pom.xml", "cd a/b && ../../mvnw -q -B test -Dtest=SumTest"},
		{"a/b/src/test/java/x/SumTest.java", java, "make", "mvnw a/mvnw a/b/pom.xml", "cd a/b && ../mvnw -q -B test -Dtest=SumTest"},
		{"src/test/java/x/SumTest.java", java, "make", "build.gradle", "gradle" + ofGradle},
		{"src/test/kotlin/SumTest.kt", "class SumTest { @Test fun a() { fail() } }", "make", "build.gradle.kts gradlew", "./gradlew" + ofGradle},
		{"lib/src/test/java/x/SumTest.java", java, "make", "settings.gradle gradlew lib/build.gradle", "cd lib && ../gradlew" + ofGradle},
		{"src/test/java/x/SumTest.java", java, "./gradlew check", "pom.xml build.gradle gradlew", "./gradlew" + ofGradle},
		{"src/test/java/x/SumTest.java", java, "mvn verify", "pom.xml build.gradle gradlew", "mvn -q -B test -Dtest=SumTest"},
		{"src/test/java/x/SumTest.java", java, "make", "build.xml", ""},
		{"spec/a_spec.rb", "it 'a' do\n  fail\nend\n", "rspec", "Gemfile", ""},
	} {
		read := func(file string) ([]byte, bool) {
			if strings.Contains(" "+c.has+" ", " bare:"+file+" ") {
				return []byte(`{"keywords": ["test"]}`), true
			}
			if strings.Contains(" "+c.has+" ", " unset:"+file+" ") {
				return []byte(`{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`), true
			}
			return []byte(`{"scripts": {"test": "node --test"}}`), strings.Contains(" "+c.has+" ", " "+file+" ")
		}
		gate, setup, _ := strings.Cut(c.gate, "|")
		got, ok := suite.RerunOf(c.file, []byte(c.text), suite.Lines{Gate: strings.Split(gate, "\n"), Setup: []string{setup}}, read)
		if got.Line != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q, want %q", c.file, got.Line, c.want)
		}
		if !suite.HoldsTests(c.file, []byte(c.text)) {
			t.Errorf("%s holds no tests", c.file)
		}
	}
	for file, text := range map[string]string{"a_test.go": "package a\n", "testdata/x.json": "{}", "a.go": goTest, "tests/helper.sh": "true\n"} {
		if suite.HoldsTests(file, []byte(text)) {
			t.Errorf("%s holds tests", file)
		}
	}
}

// A quoted path is exactly one word and never an option.
func TestQuote(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"plain/a_test.go", "", "a b", "$(touch x)", "`id`", "it's", "'; exit 0; '", "a\nb", "*", "~", "\\", "ü"} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "printf %s "+suite.Quote(text)).Output()
		if err != nil || string(out) != text {
			t.Errorf("%q is %q: %v", text, out, err)
		}
	}
	if got := suite.Quote("-rf"); got != "./-rf" {
		t.Error(got)
	}
}

func TestIsDocument(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]bool{
		"README.md": true, "docs/a.rst": true, "LICENSE": true, "docs/x.png": true, "README.txt": true,
		"words.txt": false, "requirements.txt": false, "a.go": false, "Makefile": false, "tests/cases.md": false, "k8s.yaml": false, "CMakeLists.txt": false,
	} {
		if suite.IsDocument(file) != want {
			t.Error(file)
		}
	}
}

// The commands run the tests of one file with real tools: with the code, with wrong code, and without it.
func TestRerunRuns(t *testing.T) {
	t.Parallel()
	const pytest = "from calc import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
	rust := map[string]string{
		"Cargo.toml": "[package]\nname = \"calc\"\nversion = \"0.1.0\"\nedition = \"2021\"\n", "src/lib.rs": "pub fn add(a: i64, b: i64) -> i64 {\n    a + b\n}\n",
		"tests/adds.rs": "#[test]\nfn adds() {\n    assert_eq!(calc::add(1, 2), 3);\n}\n", "tests/fails.rs": "#[test]\nfn fails() {\n    panic!();\n}\n",
	}
	python := map[string]string{"pyproject.toml": "", "calc.py": "def add(a, b):\n    return a + b\n", "test_calc.py": pytest, "test_fails.py": "def test_fails():\n    assert False\n"}
	java := map[string]string{
		"src/main/java/x/Calc.java":     "package x;\n\npublic class Calc {\n    public static int add(int a, int b) {\n        return a + b;\n    }\n}\n",
		"src/test/java/x/CalcTest.java": "package x;\n\nimport static org.junit.Assert.assertEquals;\n\nimport org.junit.Test;\n\npublic class CalcTest {\n    @Test public void adds() {\n        assertEquals(3, Calc.add(1, 2));\n    }\n}\n",
		// Only what Debian's packages maven, libsurefire-java, libmaven-compiler-plugin-java,
		// libmaven-resources-plugin-java, gradle and junit4 provide.
		"pom.xml": `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>x</groupId><artifactId>calc</artifactId><version>1</version>
<properties><maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target></properties>
<dependencies><dependency><groupId>junit</groupId><artifactId>junit</artifactId><version>4.x</version><scope>test</scope></dependency></dependencies>
</project>`,
		".mvn/maven.config": "-o\n-s\nsettings.xml\n",
		"settings.xml":      "<settings><localRepository>/usr/share/maven-repo</localRepository></settings>",
		"build.gradle": `apply plugin: 'java'
dependencies { testImplementation files('/usr/share/java/junit4.jar', '/usr/share/java/hamcrest-core.jar') }`,
	}
	const javaCode, javaTest = "src/main/java/x/Calc.java", "src/test/java/x/CalcTest.java"
	known := map[string]map[string]string{}
	for _, p := range projects() {
		known[p.name] = p.files
	}
	for name, c := range map[string]struct {
		files      map[string]string
		gate       string
		code, test string
		needs      []string // command that succeeds if the tools are installed
	}{
		"go":       {known["go"], "go test ./...", "calc.go", "calc_test.go", nil},
		"unittest": {known["unittest"], "python3 -m unittest", "calc.py", "tests/test_calc.py", nil},
		"npm":      {known["node"], "npm test", "calc.js", "test/calc.test.js", nil},
		"node":     {known["node"], "node --test", "calc.js", "test/calc.test.js", nil},
		"pytest":   {python, "pytest", "calc.py", "test_calc.py", []string{"python3", "-c", "import pytest"}},
		"cargo":    {rust, "cargo test", "src/lib.rs", "tests/adds.rs", []string{"cargo", "--version"}},
		"maven": {java, "mvn test", javaCode, javaTest, []string{
			"sh", "-c", "command -v mvn && ls -d /usr/share/maven-repo/org/apache/maven/plugins/maven-surefire-plugin /usr/share/maven-repo/junit/junit/4.x",
		}},
		"gradle": {java, "gradle test", javaCode, javaTest, []string{"sh", "-c", "command -v gradle && ls /usr/share/java/junit4.jar"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			slow := name == "maven" || name == "gradle"
			if slow && os.Getenv("RALPH_TEST_EVERYTHING") == "" {
				t.Skip("takes a minute and a half; `make soak` runs it")
			}
			before := "" // prefix of the line
			if name == "pytest" && os.Getenv("RALPH_TEST_PYTEST") != "" {
				dir := t.TempDir() // the system's Python, which has pytest, instead of another one in PATH
				if err := os.Symlink("/usr/bin/python3", filepath.Join(dir, "python3")); err != nil {
					t.Fatal(err)
				}
				before = "PATH=" + dir + ":$PATH; "
			} else if len(c.needs) > 0 && exec.CommandContext(t.Context(), c.needs[0], c.needs[1:]...).Run() != nil {
				if slow {
					t.Fatal("install what Debian calls maven, libsurefire-java, libmaven-compiler-plugin-java, libmaven-resources-plugin-java, gradle and junit4")
				}
				t.Skipf("the tools of %s are not here", name)
			}
			run, ok := suite.RerunOf(c.test, []byte(c.files[c.test]), suite.Lines{Gate: []string{c.gate}}, func(file string) ([]byte, bool) { return []byte(c.files[file]), c.files[file] != "" })
			if !ok {
				t.Fatal("no command is known")
			}
			line := []string{"sh", "-c", before + run.Line}
			wrong := strings.ReplaceAll(c.files[c.code], "a + b", "a - b")
			without := strings.ReplaceAll(c.files[c.code], "add", "other")
			without = strings.ReplaceAll(without, "Add", "Other")
			if ok, out := output(t, line, c.files); !ok {
				t.Errorf("%s fails:\n%s", run.Line, out)
			}
			if ok, _ := output(t, line, c.files, map[string]string{c.code: wrong}); ok {
				t.Errorf("%s passes with wrong code", run.Line)
			}
			ok, out := output(t, line, c.files, map[string]string{c.code: without})
			unbuilt := slices.ContainsFunc(run.Unbuilt, func(text string) bool { return strings.Contains(out, text) })
			if ok || unbuilt != (name != "npm" && name != "node") { // without a build step the call itself fails
				t.Errorf("%s without the code: %v\n%s", run.Line, ok, out)
			}
		})
	}
}
