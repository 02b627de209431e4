package toolchain

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/ralph-pool/ralph/internal/suite"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPropose(t *testing.T) {
	t.Parallel()
	type want struct{ tool, setup, gate string }
	const bundle = `BUNDLE_PATH="$HOME/.bundle" bundle `
	for name, c := range map[string]struct {
		files map[string]string
		want  []want
	}{
		"nothing":   {map[string]string{"README.md": ""}, nil},
		"go":        {map[string]string{"go.mod": "module a", "go.sum": "x"}, []want{{"go", "go mod download && (go vet ./... container/ring; go test -run '^$' ./... container/ring || true)", "go vet ./... && go test ./..."}}},
		"go, alone": {map[string]string{"go.mod": "module a", "Makefile": "all:\n\ntest:\n\tgo test"}, []want{{"go", "go vet ./... container/ring; go test -run '^$' ./... container/ring || true", "go vet ./... && go test ./..."}}},
		"go, workspace": {map[string]string{"go.work": "go 1.24\nuse ./a", "a/go.mod": "module a"}, []want{{"go",
			"go mod download && (go list -m -f '\"{{.Dir}}/...\"' | xargs go vet container/ring; go list -m -f '\"{{.Dir}}/...\"' | xargs go test -run '^$' container/ring || true)",
			"go list -m -f '\"{{.Dir}}/...\"' | xargs go vet container/ring && go list -m -f '\"{{.Dir}}/...\"' | xargs go test container/ring"}}},
		"npm workspaces": {map[string]string{"package.json": `{"workspaces":["packages/*"]}`, "package-lock.json": "{}", "packages/a/package.json": `{"scripts":{"test":"x"}}`},
			[]want{{"npm", "npm ci --no-audit --no-fund", "npm test --workspaces --if-present"}}},
		"npm workspaces with a build": {map[string]string{"package.json": `{"workspaces":["packages/*"],"scripts":{"build": "x"}}`, ".gitignore": "dist", "packages/a/package.json": `{"scripts":{"test":"x"}}`},
			[]want{{"npm", "npm install --no-package-lock --no-audit --no-fund", "npm run build && npm test --workspaces --if-present"}}},
		"npm workspaces with what npm init writes": {map[string]string{"package.json": `{"workspaces":["packages/*"]}`, "packages/a/package.json": `{"scripts":{"test":"x"}}`, "packages/b/package.json": `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`},
			[]want{{"npm", "npm install --no-package-lock --no-audit --no-fund", ""}}},
		"npm with a key of electron-builder": {map[string]string{"package.json": `{"scripts":{"test":"x"},"build":{"appId":"a"}}`, ".gitignore": "dist"}, []want{{"npm", "", "npm test"}}},
		"npm workspaces without tests": {map[string]string{"package.json": `{"workspaces":["packages/*"]}`, "package-lock.json": "{}", "packages/a/package.json": `{}`},
			[]want{{"npm", "npm ci --no-audit --no-fund", ""}}},
		"pnpm workspaces": {map[string]string{"package.json": `{}`, "pnpm-lock.yaml": "", "pnpm-workspace.yaml": "packages:\n- apps/*\n", "apps/a/package.json": `{"scripts":{"test":"x"}}`},
			[]want{{"pnpm", "pnpm install --frozen-lockfile", "pnpm -r test"}}},
		"npm": {map[string]string{"package.json": `{"scripts":{"test":"x"}}`, "package-lock.json": "{}"},
			[]want{{"npm", "npm ci --no-audit --no-fund", "npm test"}}},
		"npm with a build": {map[string]string{"package.json": `{"scripts":{"test":"x","build":"tsc"}}`, ".gitignore": "node_modules\n/dist/\n"},
			[]want{{"npm", "", "npm run build && npm test"}}},
		"npm with a build only": {map[string]string{"package.json": `{"scripts":{"build":"x"}}`, ".gitignore": "build"}, []want{{"npm", "", "npm run build"}}},
		"npm with a build that git sees": {map[string]string{"package.json": `{"scripts":{"test":"x","build":"tsc"}}`, ".gitignore": "node_modules\n"},
			[]want{{"npm", "", "npm test"}}},
		"npm without a lock": {map[string]string{"package.json": `{"dependencies":{}}`},
			[]want{{"npm", "npm install --no-package-lock --no-audit --no-fund", ""}}},
		"pnpm": {map[string]string{"package.json": `{"scripts":{"test":"x"}}`, "pnpm-lock.yaml": ""}, []want{{"pnpm", "pnpm install --frozen-lockfile", "pnpm test"}}},
		"bun":  {map[string]string{"package.json": `{}`, "bun.lock": ""}, []want{{"bun", "bun install --frozen-lockfile", "bun test"}}},
		"bun with a script": {map[string]string{"package.json": `{"scripts":{"test":"vitest run","build":"tsc"}}`, "bun.lock": "", ".gitignore": "dist"},
			[]want{{"bun", "bun install --frozen-lockfile", "bun run build && bun run test"}}},
		"deno": {map[string]string{"deno.json": `{"test": {"include": ["a"]}}`}, []want{{"deno", "deno install --no-lock", "deno test"}}},
		"deno with a task": {map[string]string{"deno.jsonc": `{"tasks": {"test": "deno test -A"}}`, "deno.lock": ""},
			[]want{{"deno", "deno install --frozen", "deno task test"}}},
		"yarn, classic": {map[string]string{"package.json": `{"scripts":{"test":"x"},"packageManager":"yarn@1.22.22"}`, "yarn.lock": "# yarn lockfile v1\n"},
			[]want{{"yarn-classic", "yarn install --frozen-lockfile --non-interactive", "yarn test"}}},
		"yarn without a file of settings": {map[string]string{"package.json": `{"scripts":{"test":"x"}}`, "yarn.lock": "# generated\n\n__metadata:\n  version: 8\n"},
			[]want{{"yarn", "yarn install --immutable", "yarn test"}}},
		"yarn without a lock": {map[string]string{"package.json": `{"scripts":{"test":"x"}}`, ".yarnrc.yml": ""},
			[]want{{"yarn", "yarn install --no-immutable", "yarn test"}}},
		"yarn that is only named": {map[string]string{"package.json": `{"scripts":{"test":"x"},"packageManager": "yarn@4.1.0"}`},
			[]want{{"yarn", "yarn install --no-immutable", "yarn test"}}},
		"yarn, classic, that is only named": {map[string]string{"package.json": `{"scripts":{"test":"x"},"packageManager": "yarn@1.22.22"}`},
			[]want{{"yarn-classic", "yarn install --no-lockfile --non-interactive", "yarn test"}}},
		"pnpm that is only named": {map[string]string{"package.json": `{"scripts":{"test":"x"},"packageManager":"pnpm@9.1.0"}`},
			[]want{{"pnpm", "pnpm install --no-lockfile", "pnpm test"}}},
		"a lock of another tool than the named one": {map[string]string{"package.json": `{"packageManager":"pnpm@9.1.0"}`, "package-lock.json": "{}"},
			[]want{{"npm", "npm ci --no-audit --no-fund", ""}}},
		"requirements": {map[string]string{"requirements.txt": "six"},
			[]want{{"pip", "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install --quiet -r requirements.txt", ".venv/bin/python -m unittest"}}},
		"requirements of a package": {map[string]string{"requirements.txt": "six", "pyproject.toml": "[build-system]\nrequires = ['setuptools']", "src/a/__init__.py": "", "tests/test_a.py": "def test_a():\n    assert 1\n"},
			[]want{{"pip", "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install --quiet -e . -r requirements.txt pytest", ".venv/bin/python -m pytest"}}},
		"requirements beside settings": {map[string]string{"requirements-dev.txt": "pytest", "pyproject.toml": "[tool.ruff]\n"},
			[]want{{"pip", "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install --quiet -r requirements-dev.txt", ".venv/bin/python -m pytest"}}},
		"pytest": {map[string]string{"pyproject.toml": "[project]\nname='a'\n[project.optional-dependencies]\ntest = ['pytest']"},
			[]want{{"pip", "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install --quiet -e '.[test]'", ".venv/bin/python -m pytest"}}},
		"a group with pytest": {map[string]string{"pyproject.toml": "[project]\nname='a'\n[dependency-groups]\ndev = ['pytest']"},
			[]want{{"pip", "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install --quiet 'pip>=25.1' && .venv/bin/pip install --quiet -e . --group dev", ".venv/bin/python -m pytest"}}},
		"a group with pytest beside an extra": {map[string]string{"pyproject.toml": "[project]\nname='a'\n[project.optional-dependencies]\ndev = ['six']\n[dependency-groups]\ntests = ['pytest']"},
			[]want{{"pip", "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install --quiet -e '.[dev]' pytest", ".venv/bin/python -m pytest"}}},
		"a group with pytest beside requirements": {map[string]string{"requirements.txt": "six", "pyproject.toml": "[dependency-groups]\ndev = ['pytest']"},
			[]want{{"pip", "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install --quiet -r requirements.txt pytest", ".venv/bin/python -m pytest"}}},
		"settings of pytest": {map[string]string{"pyproject.toml": "[project]\nname='a'\n[tool.pytest.ini_options]\n"},
			[]want{{"pip", "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install --quiet -e . pytest", ".venv/bin/python -m pytest"}}},
		"settings of pytest alone": {map[string]string{"pyproject.toml": "[tool.pytest.ini_options]\n"}, []want{{"pip", "", "python3 -m pytest"}}},
		"settings of pytest beside requirements": {map[string]string{"requirements.txt": "six", "pytest.ini": "[pytest]\n"},
			[]want{{"pip", "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install --quiet -r requirements.txt pytest", ".venv/bin/python -m pytest"}}},
		"functions of pytest": {map[string]string{"requirements.txt": "six", "tests/test_a.py": "def test_a():\n    assert 1\n"},
			[]want{{"pip", "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install --quiet -r requirements.txt pytest", ".venv/bin/python -m pytest"}}},
		"classes of unittest": {map[string]string{"setup.cfg": "", "test_a.py": "import unittest\nclass A(unittest.TestCase):\n    def test_a(self):\n        pass\n"},
			[]want{{"pip", "", "python3 -m unittest"}}},
		"nothing but pytest":      {map[string]string{"setup.cfg": "", "test_a.py": "import pytest\n"}, []want{{"pip", "", "python3 -m pytest"}}},
		"uv":                      {map[string]string{"pyproject.toml": "pytest", "uv.lock": ""}, []want{{"uv", "uv sync --frozen", "uv run --frozen pytest"}}},
		"cargo":                   {map[string]string{"Cargo.toml": "", "Cargo.lock": ""}, []want{{"cargo", "cargo fetch --locked", "cargo test"}}},
		"npm with a keyword test": {map[string]string{"package.json": `{"keywords":["test"],"scripts":{"lint":"x"}}`}, []want{{"npm", "", ""}}},
		"composer": {map[string]string{"composer.json": `{"require-dev":{"phpunit/phpunit":"^12"},"scripts":{"test": "phpunit"}}`},
			[]want{{"composer", "composer install --no-interaction", "composer test"}}},
		"composer with a keyword test": {map[string]string{"composer.json": `{"keywords":["test"],"require-dev":{"phpunit/phpunit":"^12"}}`},
			[]want{{"composer", "composer install --no-interaction", "vendor/bin/phpunit"}}},
		"rspec of a gem": {map[string]string{"Gemfile": "gemspec\n", "a.gemspec": "s.add_development_dependency 'rspec'", "Rakefile": "RSpec::Core::RakeTask.new(:spec)"},
			[]want{{"bundler", bundle + "install", bundle + "exec rspec"}}},
		"rspec in gems.rb":      {map[string]string{"gems.rb": "gem 'rspec'"}, []want{{"bundler", bundle + "install", bundle + "exec rspec"}}},
		"minitest":              {map[string]string{"Gemfile": "gem 'rake'", "Rakefile": "Minitest::TestTask.create\n"}, []want{{"bundler", bundle + "install", bundle + "exec rake test"}}},
		"rails":                 {map[string]string{"Gemfile": "gem 'rails'", "Rakefile": "Rails.application.load_tasks\n"}, []want{{"bundler", bundle + "install", bundle + "exec rake test"}}},
		"rakefile without test": {map[string]string{"Gemfile": "gem 'rake'", "Rakefile": "task :deploy\n"}, []want{{"bundler", bundle + "install", ""}}},
		"gradlew":               {map[string]string{"build.gradle.kts": "", "gradlew": ""}, []want{{"gradle", "./gradlew --no-daemon testClasses", "./gradlew --no-daemon test"}}},
		"make":                  {map[string]string{"Makefile": "all: x\ntest: all\n"}, []want{{"make", "", "make test"}}},
		"make, test first":      {map[string]string{"Makefile": "test:\n\ttrue\n"}, []want{{"make", "", "make test"}}},
		"npm init, with a build": {map[string]string{"package.json": `{"scripts": {"build": "x", "test": "echo \"Error: no test specified\" && exit 1"}}`, ".gitignore": "dist"},
			[]want{{"npm", "", "npm run build"}}},
		"npm init": {map[string]string{"package.json": `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`}, []want{{"npm", "", ""}}},
		"both": {map[string]string{"go.mod": "", "package.json": `{"scripts":{"test":"x"},"dependencies":{}}`},
			[]want{{"go", "go vet ./... container/ring; go test -run '^$' ./... container/ring || true", "go vet ./... && go test ./..."}, {"npm", "npm install --no-package-lock --no-audit --no-fund", "npm test"}}},
		"below": {map[string]string{"README.md": "", "Makefile": "all:\n", "api/go.mod": "", "api/tools/go.mod": "", "apps/it's me/package.json": `{"scripts":{"test":"x"}}`,
			"apps/node_modules/package.json": `{"scripts":{"test":"x"}}`, ".cache/go.mod": "", "a/b/c/go.mod": ""}, []want{
			{"make", "", ""},
			{"go", "(cd api && (go vet ./... container/ring; go test -run '^$' ./... container/ring || true))", "(cd api && go vet ./... && go test ./...)"},
			{"npm", "", `(cd 'apps/it'\''s me' && npm test)`},
		}},
		"top before below": {map[string]string{"go.mod": "", "web/package.json": `{"scripts":{"test":"x"}}`},
			[]want{{"go", "go vet ./... container/ring; go test -run '^$' ./... container/ring || true", "go vet ./... && go test ./..."}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range c.files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Propose(dir)
			if err != nil {
				t.Fatal(err)
			}
			var have []want
			for _, p := range got {
				have = append(have, want{p.Tool, strings.Join(p.Setup, "\n"), strings.Join(p.Gate, "\n")})
			}
			if diff := cmp.Diff(c.want, have, cmp.AllowUnexported(want{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Image lists each need once, for all proposals.
func TestImage(t *testing.T) {
	t.Parallel()
	for files, want := range map[string]string{
		"README.md":                 ";",
		"package.json":              ";",
		"pyproject.toml":            "python3 python3-venv python3-dev gcc libc6-dev python3-pytest;",
		"pyproject.toml uv.lock":    "python3 python3-venv python3-dev gcc libc6-dev python3-pip;pip install --no-cache-dir --break-system-packages uv",
		"poetry.lock Cargo.toml":    "python3 python3-venv python3-dev gcc libc6-dev python3-poetry cargo;",
		"a/Cargo.toml b/Cargo.toml": "cargo gcc libc6-dev;",
		"package.json yarn.lock":    ";",
		"package.json .yarnrc.yml":  ";npm install --global --force @yarnpkg/cli-dist && npm cache clean --force",
		"package.json deno.lock":    ";npm install --global deno && npm cache clean --force",
		"a.csproj":                  ";;dotnet",
		"build.gradle":              "default-jdk-headless;;gradle",
		"a/build.gradle a/gradlew":  "default-jdk-headless;",
	} {
		dir := t.TempDir()
		for file := range strings.FieldsSeq(files) {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		proposals, err := Propose(dir)
		if err != nil {
			t.Fatal(err)
		}
		image := Image(proposals)
		got := strings.Join(image.Packages, " ") + ";" + strings.Join(image.Lines, "; ")
		if len(image.Missing) > 0 {
			got += ";" + strings.Join(image.Missing, " ")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", files, got, want)
		}
	}
}

func TestHostsIn(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"https://proxy.example,direct":             "proxy.example",
		"https://a.example|https://b.example:8443": "a.example b.example:8443",
		"off":                                 "",
		"direct":                              "",
		"sum.example+033de0ae+Ac4zctda0e5eza": "sum.example",
		"sum.example https://mirror.example":  "sum.example mirror.example",
		"http://127.0.0.1:4873/":              "127.0.0.1:4873",
		"http://[::1]:4873/":                  "[::1]:4873",
		"http://localhost:1":                  "localhost:1",
		"undefined":                           "",
		"file:///srv/proxy":                   "",
	} {
		hosts, secret := hostsIn(text)
		if got := strings.Join(hosts, " "); got != want || secret {
			t.Errorf("%q: %q, secret %v", text, got, secret)
		}
	}
	if hosts, secret := hostsIn("https://me:pw@a.example/simple"); len(hosts) != 1 || !secret {
		t.Errorf("%q, %v", hosts, secret)
	}
	for _, text := range []string{"https://me:p%ss@a.example/simple", "https://me:p#s@a.example/", "me:pw@a.example"} {
		if _, secret := hostsIn(text); !secret {
			t.Errorf("%q holds a password", text)
		}
	}
}

// asker returns a proposal that asks the named tool.
func asker(t *testing.T, name string) Proposal {
	t.Helper()
	for _, e := range known() {
		for _, tool := range e.Tools {
			if tool.Name == name {
				return Proposal{asks: tool.Hosts, asked: e.Asked, bare: e.Bare}
			}
		}
	}
	t.Fatalf("%s is not known", name)
	return Proposal{}
}

// The answers are the user's own settings, asked for outside of the project. A setting with a password is not copied.
func TestSource(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	tool := func(name, script string) {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\n"+script), 0o700); err != nil { //nolint:gosec // a program
			t.Fatal(err)
		}
	}
	tool("go", `[ "$2" = GOSUMDB ] && { [ "$GOENV" = off ] && echo sum.example || echo off; exit; }; if [ "$GOENV" = off ]; then echo https://built-in.example; else echo https://goproxy.corp.example:8081,direct; fi`)
	tool("npm", `echo "https://me:secret@npm.corp.example/"`)
	tool("python3", `[ "$2" = pip ] && exit 1; echo https://index.example/simple files.example`)
	env := []string{"UV_DEFAULT_INDEX=http://10.0.0.1:3141/simple", "PATH=" + bin + ":/usr/bin:/bin", "HOME=/home/x"}
	for name, want := range map[string]Source{
		"go":     {Hosts: []string{"goproxy.corp.example:8081"}, Env: []string{"GOPROXY=https://goproxy.corp.example:8081,direct", "GOSUMDB=off"}},
		"npm":    {Hosts: []string{"npm.corp.example"}, Secret: []string{"npm_config_registry"}},
		"pip":    {Hosts: []string{"index.example", "files.example"}},
		"uv":     {Hosts: []string{"10.0.0.1:3141"}, Env: []string{"UV_DEFAULT_INDEX=http://10.0.0.1:3141/simple"}},
		"cargo":  {},
		"pnpm":   {Hosts: []string{"npm.corp.example"}, Secret: []string{"npm_config_registry"}}, // pnpm is missing, and reads npm's settings
		"pipenv": {Hosts: []string{"index.example", "files.example"}},
	} {
		got := asker(t, name).Source(t.Context(), env)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// Pip that may not ask an index needs no host, but the places of its packages.
func TestSourceOfPipWithoutIndex(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	script := `#!/bin/sh
case $5$HOME in
global.find-links/home/x) printf '\n/srv/wheels/\nhttps://wheels.example/x' ;;
global.no-index/home/x) echo true ;;
global.*) exit 1 ;;
*) echo https://index.example/simple
esac
`
	if err := os.WriteFile(filepath.Join(bin, "python3"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	path := "PATH=" + bin + ":/usr/bin:/bin"
	for want, env := range map[*Source][]string{
		{
			Hosts: []string{"wheels.example"}, Folders: []string{"/srv/wheels"},
			Env: []string{"PIP_FIND_LINKS=/srv/wheels/ https://wheels.example/x", "PIP_NO_INDEX=true"},
		}: {path, "HOME=/home/x"},
		{Hosts: []string{"index.example"}}: {path, "HOME=/home/y", "PIP_NO_INDEX=false"},
	} {
		if diff := cmp.Diff(*want, asker(t, "pip").Source(t.Context(), env)); diff != "" {
			t.Error(diff)
		}
	}
}

// TestSourceNearForeignFiles puts settings where every user of the host can: tools search the folders above their own.
func TestSourceNearForeignFiles(t *testing.T) {
	shared, bin := t.TempDir(), t.TempDir()
	t.Setenv("TMPDIR", shared)
	if err := os.WriteFile(filepath.Join(shared, ".yarnrc"), []byte("https://evil.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\nwhile :; do [ -f .yarnrc ] && cat .yarnrc; [ \"$PWD\" = / ] && exit; cd ..; done\n"
	if err := os.WriteFile(filepath.Join(bin, "yarn"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	got := asker(t, "yarn").Source(t.Context(), []string{"PATH=" + bin + ":/usr/bin:/bin"})
	if diff := cmp.Diff(Source{}, got); diff != "" {
		t.Error(diff)
	}
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"go vet ./... && go test ./...":             "go",
		"CGO_ENABLED=1 go test ./... | tee out":     "go tee",
		"cd web && npm test":                        "npm",
		"./check.sh; .venv/bin/python -m pytest":    "",
		`BUNDLE_PATH="$HOME/.bundle" bundle exec x`: "bundle",
		"if true; then make test; fi":               "",
		"":                                          "",
	} {
		if got := strings.Join(Programs([]string{line}), " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func FuzzHostsIn(f *testing.F) {
	f.Add("https://a.example:1|direct")
	f.Add("sum.example+1+2 http://[::1]:2")
	f.Fuzz(func(t *testing.T, text string) {
		hosts, _ := hostsIn(text)
		for _, h := range hosts {
			if h == "" || strings.ContainsAny(h, " /,|") {
				t.Errorf("%q: %q", text, h)
			}
		}
	})
}

func TestRetestable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, text, gate string
		want             bool
	}{
		"tests":                {"a_test.go", "package a\n\nfunc TestA(t *testing.T) {}\n", "go test ./...", true},
		"below":                {"api/a_test.go", "package a\n\nfunc TestA(t *testing.T) {}\n", "(cd api && go test ./...)", true},
		"no test in it":        {"a_test.go", "package a\n", "go test ./...", false},
		"no tests":             {"a.go", "package a\n", "go test ./...", false},
		"of somebody else":     {"vendor/a_test.go", "package a\n\nfunc TestA(t *testing.T) {}\n", "go test ./...", false},
		"no template for them": {"spec/a_spec.rb", "it 'works' do\nend\n", "bundle exec rspec", false},
	} {
		dir := t.TempDir()
		for file, text := range map[string]string{"go.mod": "", "api/go.mod": "", c.file: c.text} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := Retestable(dir, suite.Lines{Gate: []string{c.gate}}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A project that pins its pnpm gets this version: another one would fetch it at each start, or refuse to run.
func TestImageHasThePinnedProgram(t *testing.T) {
	t.Parallel()
	for pin, want := range map[string]string{
		"": "pnpm", "pnpm@9.15.0": "pnpm@9.15.0", "pnpm@9": "pnpm@9", "pnpm@9.1.0+sha512.ab12": "pnpm@9.1.0", "pnpm@10.0.0-rc.1": "pnpm@10.0.0-rc.1",
		"yarn@4.1.0": "pnpm", "pnpm@1; rm -rf /": "pnpm", "pnpm@latest": "pnpm",
	} {
		dir := t.TempDir()
		err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"packageManager": "`+pin+`", "scripts": {"test": "x"}}`), 0o600)
		if err = errors.Join(err, os.WriteFile(filepath.Join(dir, "pnpm-lock.yaml"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		proposals, err := Propose(dir)
		if lines := Image(proposals).Lines; err != nil || !slices.Equal(lines, []string{"npm install --global " + want + " && npm cache clean --force"}) {
			t.Errorf("%s: %q, %v", pin, lines, err)
		}
	}
}
