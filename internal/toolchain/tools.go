package toolchain

import (
	"io/fs"
	"slices"
)

// tools are the tools by the names that package ecosystem gives them.
//
// Lines leave nothing in the worktree that git would see, so that they do the same in an agent's worktree and on a clean
// checkout. Hosts are asked from the tools; for a tool that cannot say, a refused connection names them.
func tools() map[string]tool {
	inVenv := func(line string) string {
		return "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install --quiet " + line
	}
	pytest := []choice{
		{files: []string{"pyproject.toml", "requirements.txt", "requirements-dev.txt", "setup.cfg", "tox.ini", "pytest.ini", "Pipfile", "setup.py"},
			words: []string{"pytest"}, line: "pytest"},
	}
	tested := func(prefix string) []choice {
		var out []choice
		for _, c := range pytest {
			c.line = prefix + c.line
			out = append(out, c)
		}
		return append(out, choice{when: forPytest, line: prefix + "pytest"}, choice{line: prefix + "python -m unittest"})
	}
	// Requirements may leave out the project itself, which its tests import.
	installed := choice{files: []string{"pyproject.toml"}, words: []string{"\n[project]", "\n[build-system]"}}.fits
	venv := []choice{
		{files: []string{"requirements-dev.txt"}, when: installed, line: inVenv("-e . -r requirements-dev.txt")},
		{files: []string{"requirements.txt"}, when: installed, line: inVenv("-e . -r requirements.txt")},
		{files: []string{"requirements-dev.txt"}, line: inVenv("-r requirements-dev.txt")},
		{files: []string{"requirements.txt"}, line: inVenv("-r requirements.txt")},
		{files: []string{"pyproject.toml"}, words: []string{"\ntest = [", "\ntest=["}, line: inVenv("-e '.[test]'")},
		{files: []string{"pyproject.toml"}, words: []string{"\ndev = [", "\ndev=["}, line: inVenv("-e '.[dev]'")},
		{files: []string{"pyproject.toml"}, words: []string{"[project]"}, line: inVenv("-e .")},
		{files: []string{"setup.py"}, line: inVenv("-e .")},
	}
	var lacking []choice // pytest, which its tests are for
	for _, c := range venv {
		lacking = append(lacking, choice{files: c.files, words: c.words, line: c.line + " pytest", when: func(top fs.FS) bool {
			return (c.when == nil || c.when(top)) && forPytest(top) && !pytest[0].fits(top)
		}})
	}
	inside := func(when func(fs.FS) bool, module string) []choice {
		return []choice{
			{files: []string{"requirements-dev.txt", "requirements.txt", "setup.py"}, when: when, line: ".venv/bin/python -m " + module},
			{files: []string{"pyproject.toml"}, words: []string{"[project]"}, when: when, line: ".venv/bin/python -m " + module},
			{when: when, line: "python3 -m " + module},
		}
	}
	script := func(run string) []choice {
		return []choice{
			{files: []string{"package.json"}, words: []string{"Error: no test specified"}}, // what `npm init` writes always fails
			{files: []string{"package.json"}, words: []string{`"test"`}, line: run},
		}
	}
	node := []choice{{files: []string{"package.json"}, words: []string{`"dependencies"`, `"devDependencies"`, `"workspaces"`}}}
	needs := func(line string) []choice { c := node[0]; c.line = line; return []choice{c} }
	warm := "go vet ./...; go test -run '^$' ./... || true"
	return map[string]tool{
		"go": {
			// Vetting, and testing nothing, fill the build cache: what they compile and vet differs, and neither is done again.
			setup: []choice{{files: []string{"go.work", "go.sum"}, line: "go mod download && (" + warm + ")"}, {line: warm}},
			gate:  []choice{{line: "go vet ./... && go test ./..."}},
			asks:  []ask{{argv: []string{"go", "env", "GOPROXY"}, name: "GOPROXY"}, {argv: []string{"go", "env", "GOSUMDB"}, name: "GOSUMDB"}},
		},
		"npm": {
			setup: append([]choice{{files: []string{"package-lock.json", "npm-shrinkwrap.json"}, line: "npm ci --no-audit --no-fund"}},
				needs("npm install --no-package-lock --no-audit --no-fund")...),
			gate: script("npm test"),
			asks: []ask{{argv: []string{"npm", "config", "get", "registry"}, name: "npm_config_registry"}},
		},
		"pnpm": {
			setup: []choice{{files: []string{"pnpm-lock.yaml"}, line: "pnpm install --frozen-lockfile"}},
			gate:  script("pnpm test"),
			asks:  []ask{{argv: []string{"pnpm", "config", "get", "registry"}, name: "npm_config_registry"}},
		},
		"yarn": {
			setup: []choice{
				{files: []string{".yarnrc.yml"}, line: "yarn install --immutable"},
				{files: []string{"yarn.lock"}, line: "yarn install --frozen-lockfile --non-interactive"},
			},
			gate: script("yarn test"),
			asks: []ask{{argv: []string{"yarn", "config", "get", "npmRegistryServer"}, name: "YARN_NPM_REGISTRY_SERVER"},
				{argv: []string{"yarn", "config", "get", "registry"}, name: "npm_config_registry"}},
		},
		"bun":  {setup: []choice{{line: "bun install --frozen-lockfile"}}, gate: []choice{{line: "bun test"}}, asks: []ask{npmRegistry()}},
		"deno": {setup: []choice{{line: "deno install --frozen"}}, gate: []choice{{line: "deno test"}}, asks: []ask{npmRegistry()}},

		"uv": {
			setup: []choice{{files: []string{"uv.lock"}, line: "uv sync --frozen"}},
			gate:  tested("uv run --frozen "), asks: pipAsks("UV_DEFAULT_INDEX"),
		},
		"poetry": {
			setup: []choice{{files: []string{"poetry.lock"}, line: "poetry install --no-interaction"}},
			gate:  tested("poetry run "), asks: pipAsks("PIP_INDEX_URL"),
		},
		"pdm": {
			setup: []choice{{files: []string{"pdm.lock"}, line: "pdm sync"}},
			gate:  tested("pdm run "), asks: pipAsks("PDM_PYPI_URL"),
		},
		"pipenv": {
			setup: []choice{{files: []string{"Pipfile.lock"}, line: "pipenv sync --dev"}},
			gate:  tested("pipenv run "), asks: pipAsks("PIP_INDEX_URL"),
		},
		"pip": {
			setup: append(lacking, venv...),
			gate: slices.Concat([]choice{
				{files: []string{"requirements-dev.txt", "requirements.txt", "pyproject.toml", "setup.py", "setup.cfg"}, words: []string{"pytest"},
					line: ".venv/bin/python -m pytest"},
			}, inside(forPytest, "pytest"), inside(nil, "unittest")),
			asks: pipAsks("PIP_INDEX_URL"),
		},

		"cargo": {
			setup: []choice{{files: []string{"Cargo.lock"}, line: "cargo fetch --locked"}, {line: "cargo fetch"}},
			gate:  []choice{{line: "cargo test"}},
		},
		"gradle": {
			setup: []choice{{files: []string{"gradlew"}, line: "./gradlew --no-daemon testClasses"}, {line: "gradle --no-daemon testClasses"}},
			gate:  []choice{{files: []string{"gradlew"}, line: "./gradlew --no-daemon test"}, {line: "gradle --no-daemon test"}},
		},
		"maven": {
			setup: []choice{{files: []string{"mvnw"}, line: "./mvnw -B -q test-compile"}, {line: "mvn -B -q test-compile"}},
			gate:  []choice{{files: []string{"mvnw"}, line: "./mvnw -B -q test"}, {line: "mvn -B -q test"}},
		},
		"bundler": {
			setup: []choice{{line: `BUNDLE_PATH="$HOME/.bundle" bundle install`}},
			gate: []choice{
				{files: []string{"Gemfile"}, words: []string{"rspec"}, line: `BUNDLE_PATH="$HOME/.bundle" bundle exec rspec`},
				{files: []string{"Rakefile"}, line: `BUNDLE_PATH="$HOME/.bundle" bundle exec rake test`},
			},
		},
		"composer": {
			setup: []choice{{line: "composer install --no-interaction"}},
			gate: []choice{
				{files: []string{"composer.json"}, words: []string{`"test"`}, line: "composer test"},
				{files: []string{"composer.json"}, words: []string{"phpunit"}, line: "vendor/bin/phpunit"},
			},
		},
		"dotnet": {setup: []choice{{line: "dotnet restore"}}, gate: []choice{{line: "dotnet test --no-restore"}}},
		"make":   {gate: []choice{{files: []string{"Makefile", "makefile", "GNUmakefile"}, words: []string{"\ntest:", "\ntest "}, line: "make test"}}},
		"just":   {gate: []choice{{files: []string{"justfile", "Justfile", ".justfile"}, words: []string{"\ntest"}, line: "just test"}}},
		"task":   {gate: []choice{{files: []string{"Taskfile.yml", "Taskfile.yaml"}, words: []string{"test:"}, line: "task test"}}},
		"bazel":  {gate: []choice{{line: "bazel test //..."}}},
	}
}

// forPytest reports that tests are functions or import pytest: unittest finds none in them, and passes.
func forPytest(top fs.FS) bool {
	return choice{
		files: []string{"test_*.py", "*_test.py", "test/test_*.py", "tests/test_*.py", "tests/*_test.py", "tests/*/test_*.py", "src/*/tests/test_*.py"},
		words: []string{"\ndef test_", "\nasync def test_", "\nimport pytest", "\nfrom pytest "},
	}.fits(top)
}
