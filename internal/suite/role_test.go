package suite_test

import (
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/suite"
)

func TestRoleOf(t *testing.T) {
	t.Parallel()
	for role, files := range map[ecosystem.Role]string{
		ecosystem.None: `main.go pkg/calc.go README.md src/app.ts src/calc.py docs/index.md pkg/testing.go src/app/json.py
			types/index.d.ts src/contest.js latest.py internal/attest/a.go app/vendor.go pkg/unittest.go
			avatar.svg tapes.txt latest.toml pytest.md calc/pytest.txt docs/jest.png src/app.config.ts app/tasks.py config.toml settings.ini .app.toml`,
		ecosystem.Test: `calc_test.go pkg/testdata/go.mod pkg/testdata/a/b.json test_calc.py pkg/calc_test.py tests/data.json
			src/app.test.ts src/app.spec.js src/__tests__/app.js src/__snapshots__/a.snap test/run.js web/spec/models/user.js
			tests/fixtures/package.json out.golden e2e/login.ts a/b/testdata/Makefile`,
		ecosystem.TestConfig: `conftest.py a/b/conftest.py tests/conftest.py pytest.ini tox.ini setup.cfg pyproject.toml jest.config.js
			jest.config.integration.ts web/vitest.config.mts .mocharc.yml karma.conf.js .golangci.yml .eslintrc.json __mocks__/fs.js
			vite.config.ts .coveragerc .pytest.toml a/.pytest.toml .setup.cfg mocharc.yml .phpunit.xml coveragerc .jest.config.json
			.proverc .proverc.ci .perlcriticrc pytest-9.toml vitest.json .phpunit.settings .rspec-ci jest.yml mypy.toml .ruffrc nextest.toml`,
		ecosystem.Environment: `.env .env.test web/.env sitecustomize.py go.work .npmrc unittest.py tests/unittest.py pytest.py pytest/__init__.py
			src/json.py json/__init__.py node_modules/left-pad/index.js vendor/github.com/x/y/y.go .gitattributes x.pth
			__pycache__/calc.cpython-311.pyc .pytest_cache/v/cache/lastfailed node_modules/x/x.test.js vendor/x/x_test.go .venv/lib/a.py
			.tool-versions .turbo/cache/1.tar`,
		ecosystem.Build: `Makefile lib/rules.mk package.json web/package-lock.json go.mod go.sum Dockerfile requirements-dev.txt setup.py
			Build.PL cpanfile hardhat.config.ts mix.exs project/plugins.sbt tasks.py taskfile.dist.yaml angular.json x.rockspec Package.swift
			CMakeLists.txt justfile Taskfile.yml tsconfig.json pnpm-lock.yaml uv.lock build/Dockerfile.test`,
	} {
		for file := range strings.FieldsSeq(files) {
			got, reason := suite.RoleOf(file, nil)
			if got != role || (reason == "") != (role == ecosystem.None) {
				t.Errorf("%s is %q (%s), want %q", file, got, reason, role)
			}
		}
	}
}

func TestRoleOfGate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		gate, file string
		want       ecosystem.Role
	}{
		{"./scripts/test.sh", "scripts/test.sh", ecosystem.GateScript},
		{"./scripts/test.sh --fast", "scripts/lint.sh", ecosystem.None},
		{"sh ci/check", "ci/check", ecosystem.GateScript},
		{"sh check", "check", ecosystem.GateScript},
		{"bash -c './ci/check && true'", "ci/check", ecosystem.GateScript},
		{"python tools/run.py", "tools/run.py", ecosystem.GateScript},
		{"python3 -m tools.run", "tools/run.py", ecosystem.GateScript},
		{"python3 -m tools", "tools/__main__.py", ecosystem.GateScript},
		{"make -f ci/x.mk test", "ci/x.mk", ecosystem.GateScript},
		{"make test", "Makefile", ecosystem.GateScript},
		{"make test", "sub/Makefile", ecosystem.Build},
		{"make -C sub test", "sub/Makefile", ecosystem.GateScript},
		{"cd web && npm test", "web/package.json", ecosystem.GateScript},
		{"npm run check", "package.json", ecosystem.GateScript},
		{"go test ./...", "package.json", ecosystem.Build},
		{"cd a && cd b && ./run.sh", "a/b/run.sh", ecosystem.GateScript},
		{"FOO=bar ./run.sh>out", "run.sh", ecosystem.GateScript},
		{"npx jest --config=ci/jest.json", "ci/jest.json", ecosystem.GateScript},
		{"npm test", "test", ecosystem.None},
		{"go test ./...", "go", ecosystem.None},
		{"../outside.sh /etc/passwd", "outside.sh", ecosystem.None},
		{"just ci", "justfile", ecosystem.GateScript},
		{"tox -e py", "tox.ini", ecosystem.GateScript},
		{"go run ./tools/check.go", "tools/check.go", ecosystem.GateScript},
		{"bash ci/*.sh", "ci/new.sh", ecosystem.GateScript},
		{"./ci/*-check", "ci/new-check", ecosystem.GateScript},
		{"cd web && for f in ci/*.sh lib/**/*.sh; do sh -e \"$f\"; done", "web/lib/a/b.sh", ecosystem.GateScript},
		{"for f in spec/?.sh; do if ! ./\"${f}\"; then exit 1; fi; done", "spec/a.sh", ecosystem.GateScript},
		{"for f in src/*.js; do node --check \"$f\"; done", "src/a.js", ecosystem.None},
		{"for f in src/*.sh; do shellcheck ${f}; done; bash -n src/*.sh", "src/a.sh", ecosystem.None},
		{"eslint src/*.js && prettier --check *.md", "src/a.js", ecosystem.None},
		{"make -fci/rules", "ci/rules", ecosystem.GateScript},
		{". \"$PWD/ci/env\"", "ci/env", ecosystem.GateScript},
		{"cd a; cd b; cd c; cd d; cd e; cd f; ./x.sh", "a/b/c/d/e/f/x.sh", ecosystem.None}, // the number of folders is limited
	}
	for _, tt := range tests {
		if got, _ := suite.RoleOf(tt.file, []string{tt.gate}); got != tt.want {
			t.Errorf("%s with the gate %q is %q, want %q", tt.file, tt.gate, got, tt.want)
		}
	}
}

// A program of the gate reads settings that are named after it, whether or not a list has it.
func TestSettingsOfPrograms(t *testing.T) {
	t.Parallel()
	for gate, files := range map[string]struct{ settings, others string }{
		"prove -l t": {".prove.yml", "prover.txt lib/prove.toml proverb.yml"}, "FOO=1 zorp -x": {"zorp.toml .zorprc zorp.config.py .config/zorp.toml", "zorp zorp.py zorp.md zorp.svg a/zorp.toml"},
		"npx wtr && quux3 t":     {".quux quux.json quux-ci.yml quuxfile.js Quuxfile", "quux.js quuxes.txt"},
		"cd a; cargo deny check": {"deny.toml .deny.x", "check.toml denied.txt"}, "lua x.lua": {".luarc", "calc.lua test.lua"},
		"make app && zork -k login": {"zork.toml", "app.json login.json"}, "cd web && zork": {"zork.toml", "web.json zork.css zork.sql"},
		"make test build": {"", "test.txt build.json"}, "grep zork x": {"", "zork.txt"}, "./zork x": {"", "zork.txt"},
	} {
		roleOf := func(file string) ecosystem.Role {
			role, _ := suite.RoleOf(file, []string{gate})
			return role
		}
		for file := range strings.FieldsSeq(files.settings) {
			if got := roleOf(file); got != ecosystem.TestConfig {
				t.Errorf("%s: %s is %q", gate, file, got)
			}
		}
		for file := range strings.FieldsSeq(files.others) {
			if got := roleOf(file); got != ecosystem.None {
				t.Errorf("%s: %s is %q", gate, file, got)
			}
		}
	}
}

// A file that a gate line only inspects is not a script of the gate.
func TestFilesThatAGateLooksAt(t *testing.T) {
	t.Parallel()
	gate := []string{"test -f hello.txt && ! grep -q x src/a.txt; sh ci/run.sh", "if [ -e other.txt ]; then ./check.py; fi"}
	for file, want := range map[string]ecosystem.Role{
		"hello.txt": ecosystem.None, "src/a.txt": ecosystem.None, "other.txt": ecosystem.None,
		"ci/run.sh": ecosystem.GateScript, "check.py": ecosystem.GateScript,
	} {
		if got, why := suite.RoleOf(file, gate); got != want {
			t.Errorf("%s is a %s (%s), want %s", file, got, why, want)
		}
	}
}
