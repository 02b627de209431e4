package ecosystem

import "github.com/ralph-pool/ralph/internal/ecosystem/lex"

// generic describes what belongs to no language: make, scripts, containers, data of tests.
func generic() Ecosystem {
	return Ecosystem{
		Name: "generic", Alone: true,
		Markers: []string{"Makefile", "makefile", "GNUmakefile", "justfile", "Justfile", "Taskfile.yml", "Taskfile.yaml",
			"CMakeLists.txt", "meson.build", "BUILD.bazel"},
		Tools: genericTools(),
		Groups: []Group{
			{Role: Environment, First: true, Files: []string{"vendor/"},
				Reason: "is a copy of a library that is used in its place"},
			{Role: Environment, First: true, Files: []string{".cache/", ".ccache/", "bazel-bin/", "bazel-out/"},
				Reason: "is a cache, whose results stand for checks"},
			{Role: Test, First: true, Files: []string{"testdata/", "fixtures/", "__fixtures__/", "*.golden", "golden/",
				"goldens/", "cassettes/", "snapshots/"}, Reason: "is data of tests"},
			{Role: Test, Files: []string{"test/", "tests/", "e2e/", "acceptance/", "*.bats", "*.feature", "*.approved.*"},
				Reason: "stands with the tests"},
			{Role: Test, Files: []string{"*_spec.*", "*_test.*", "test_*.*"}, Reason: "is named like a test"},
			{Role: TestConfig, Files: []string{"codecov.yml", ".codecov.yml", ".pre-commit-config.yaml", "lefthook.*",
				".editorconfig", "CTestConfig.cmake", "CTestCustom.cmake", "sonar-project.properties", ".busted",
				".luacov", ".shellspec", ".green", ".zunit.yml", "ward.toml", "robot.toml", "molecule.yml", "karate-config.js",
				"goss.yaml", ".shellcheckrc", "tests.edn", "config/test.exs", "spec_helper.*"},
				Reason: "configures a check"},
			{Role: Environment, Files: []string{".env", ".env.*", ".envrc", ".flaskenv", ".tool-versions", "mise.toml",
				".mise.toml", ".gitattributes", ".gitmodules", ".curlrc", ".wgetrc", ".bashrc", ".profile", ".inputrc",
				"flake.nix", "flake.lock", "shell.nix", "devenv.nix"},
				Reason: "changes how tools run"},
			{Role: Build, Files: []string{"Makefile", "makefile", "GNUmakefile", "Makefile.*", "*.mk", "*.mak", "justfile",
				"Justfile", ".justfile", "*.just", "Taskfile.*", "taskfile.*", "CMakeLists.txt",
				"*.cmake", "CMake*Presets.json", "meson.build", "meson_options.txt", "BUILD", "BUILD.bazel", "MODULE.bazel",
				"WORKSPACE", "WORKSPACE.bazel", ".bazelrc", "*.bzl", "configure", "configure.ac", "Makefile.am", "SConstruct",
				"build.ninja", "Dockerfile", "Dockerfile.*", "*.dockerfile", "Containerfile", "docker-compose*.yml",
				"docker-compose*.yaml", "compose.yml", "compose.yaml", "Earthfile", "dagger.json", "Tiltfile", "wscript",
				"meson.options", "mise-tasks/", ".mise-tasks/", "Snakefile", "dodo.py", "fabfile.py",
				"mix.exs", "rebar.config", "Package.swift", "pubspec.yaml", "project.clj", "deps.edn", "bb.edn",
				"stack.yaml", "cabal.project", "dune", "dune-project", "build.zig", "build.zig.zon", "shard.yml", "foundry.toml",
				"gleam.toml", "build.sc", "build.mill", "*.rockspec", "*.cabal", "*.nimble", "nim.cfg", "config.nims",
				"/build.yaml", "/package.yaml", "/Project.toml", "/DESCRIPTION", "pixi.toml", "/remappings.txt", "/tasks.py", "*.sbt"},
				Reason: "says how the project is built"},
		},
		Runners: map[string][]string{
			"make": {"GNUmakefile", "makefile", "Makefile"}, "gmake": {"GNUmakefile", "makefile", "Makefile"},
			"just": {"justfile", "Justfile", ".justfile"}, "task": {"Taskfile.yml", "Taskfile.yaml", "Taskfile.dist.yml"},
			"ctest": {"CMakeLists.txt"}, "cmake": {"CMakeLists.txt"}, "meson": {"meson.build"}, "earthly": {"Earthfile"},
			"pre-commit": {".pre-commit-config.yaml"}, "bazel": {"BUILD.bazel", "MODULE.bazel", ".bazelrc"},
		},
		Interpreters: []string{"sh", "bash", "dash", "zsh", "ksh", "fish", "perl", "pwsh", "env", "time", "exec", "xargs", "lua", "luajit", "tsx"},
		Sources: []string{"*.sh", "*.bash", "*.mk", "Makefile", "makefile", "GNUmakefile", "justfile", "Justfile",
			"Taskfile.yml", "Taskfile.yaml", "package.json", "composer.json", "tox.ini", "Dockerfile"},
		// Without strings, because commands appear in them.
		Syntax: lex.Syntax{Spans: []lex.Span{{Open: "#", Close: "\n", Comment: true, Apart: true, Not: "!"}}},
		Shapes: []Shape{
			{Kind: FailureIgnored, Main: true, Roles: []Role{Build, TestConfig, GateScript},
				Has: []string{"| | true", "| | :", "; true", "; :", "| | exit 0", "; exit 0", "& & exit 0", "set + e*",
					". IGNORE :", "ignore_errors : true", "ignore_error : true", "continue - on - error : true",
					"- - passWithNoTests", "- - pass - with - no - tests", "- - exit - zero", "- - if - present",
					"- - no - verify", "testFailureIgnore > true", "ignoreFailures = true", "skipTests > true",
					"maven . test . skip", "failOnNoDiscoveredTests = false"},
				Detail: "goes on when a check fails"},
			{Kind: EarlyExit, Main: true, Roles: []Role{Build, TestConfig, GateScript}, Has: []string{"exit 0", "kill - 9 $ $"},
				Detail: "ends with success"},
		},
	}
}

func genericTools() []Tool {
	testing := func(shell string, words []string, files ...string) []Line {
		return []Line{{If: []Clue{{Files: files, Words: words}}, Shell: shell}}
	}
	fetches := sameReason("its rules say what it fetches, if anything", NoSetup, NoHosts, NoCaches, NoReads)
	return []Tool{
		{
			Name: "make", Markers: []string{"Makefile", "makefile", "GNUmakefile"}, Lacks: fetches, Image: Image{Packages: []string{"make"}},
			Gate: testing("make test", []string{"\ntest:", "\ntest "}, "Makefile", "makefile", "GNUmakefile"),
		},
		{
			Name: "just", Markers: []string{"justfile", "Justfile", ".justfile"}, Lacks: fetches, Image: Image{Packages: []string{"just"}},
			Gate: testing("just test", []string{"\ntest"}, "justfile", "Justfile", ".justfile"),
		},
		{
			Name: "task", Markers: []string{"Taskfile.yml", "Taskfile.yaml"}, Lacks: fetches, Image: jsProgram("@go-task/cli"),
			Gate: testing("task test", []string{"test:"}, "Taskfile.yml", "Taskfile.yaml"),
		},
		{Name: "cmake", Markers: []string{"CMakeLists.txt"}, Lacks: sameReason("it needs a folder to build in")},
		{Name: "meson", Markers: []string{"meson.build"}, Lacks: sameReason("it needs a folder to build in")},
		{
			Name: "bazel", Markers: []string{"BUILD.bazel", "MODULE.bazel", "WORKSPACE"}, Lacks: fetches, Image: jsProgram("@bazel/bazelisk"),
			Gate: []Line{{Shell: "bazel test //..."}},
		},
	}
}
