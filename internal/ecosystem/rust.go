package ecosystem

import (
	"path"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
)

func rust() Ecosystem {
	return Ecosystem{
		Name:       "rust",
		Markers:    []string{"Cargo.toml"},
		Tools:      rustTools(),
		Registries: []Registry{{File: ".cargo/config.toml", Keys: []string{"index", "registry"}}},
		Checkers:   strings.Fields("nextest tarpaulin clippy rustfmt"),
		Groups: []Group{
			{Role: Environment, First: true, Files: []string{"target/debug/", "target/release/", "*.rlib", "*.rmeta"},
				Reason: "is a result of a build, which stands for the code"},
			{Role: Test, Files: []string{"tests/*.rs", "tests/*/main.rs"}, Reason: "holds Rust tests"},
			{Role: Test, Files: []string{"tests/**/*.rs", "tests.rs", "*_test.rs", "*_tests.rs", "test_*.rs", "benches/*.rs",
				"src/**/snapshots/*.snap"},
				Reason: "belongs to Rust tests"},
			{Role: TestConfig, Files: []string{"nextest.toml", ".config/nextest.toml", "insta.yaml", "tarpaulin.toml",
				".tarpaulin.toml", "deny.toml", "clippy.toml", ".clippy.toml", "rustfmt.toml", ".rustfmt.toml"},
				Reason: "configures checks of Rust code"},
			{Role: Environment, Files: []string{".cargo/config.toml", ".cargo/config", "rust-toolchain", "rust-toolchain.toml"},
				Reason: "changes how Rust tools run"},
			{Role: Build, Files: []string{"Cargo.toml", "Cargo.lock", "build.rs", "Makefile.toml"},
				Reason: "says how Rust code is built"},
		},
		Runners: map[string][]string{"cargo-make": {"Makefile.toml"}, "xtask": {"xtask/src/main.rs"}},
		Sources: []string{"*.rs"},
		Syntax: lex.Syntax{Lifetimes: true, Spans: []lex.Span{
			{Open: "//", Close: "\n", Comment: true},
			{Open: "/*", Close: "*/", Comment: true, Lines: true, Nest: true},
			{Open: `r###"`, Close: `"###`, Lines: true},
			{Open: `r##"`, Close: `"##`, Lines: true},
			{Open: `r#"`, Close: `"#`, Lines: true},
			{Open: `br#"`, Close: `"#`, Lines: true},
			{Open: `r"`, Close: `"`, Lines: true},
			{Open: `br"`, Close: `"`, Lines: true},
			{Open: `"`, Close: `"`, Escape: true, Lines: true},
		}},
		Inline: true,
		Tests: []string{"# [ test ]", "# [ % : : test ]", "# [ % : : test (", "# [ rstest", "# [ test_case", "# [ quickcheck ]",
			"# [ wasm_bindgen_test ]", "# [ test_log : : test"},
		Skips: []string{"# [ ignore", "# [ cfg_attr ( % , ignore", "# [ cfg ( any ( ) )", "# ! [ cfg ("},
		Assertions: []string{"assert* !", "debug_assert* !", "prop_assert* !", "panic !", "unreachable !", ". unwrap_err (",
			". expect_err ("},
		Main:      []string{"fn main ("},
		MainFiles: []string{"src/bin/**/*.rs", "src/main.rs", "build.rs"},
		Shapes: []Shape{
			{Kind: EarlyExit, Has: []string{"process : : exit ( 0 )", "libc : : _exit (", "libc : : exit ( 0 )",
				"ExitCode : : SUCCESS . exit_process ("},
				Detail: "ends the process with success"},
			{Kind: TestAware, Main: true, Roles: []Role{None}, Has: []string{"cfg ! ( test )", "# [ cfg ( not ( test ) ) ]",
				`"NEXTEST"`, `"RUST_TEST_THREADS"`},
				Detail: "asks whether it runs under test"},
			{Kind: RunnerHook, Main: true, Roles: []Role{None, Test}, Has: []string{"macro_rules ! assert*",
				"macro_rules ! panic"},
				Detail: "defines an assertion of its own in the place of the library's"},
		},
		Retests: []Retest{{Root: []string{"Cargo.toml"}, Files: []string{"tests/*.rs"}, Line: "cargo test --test {stem}",
			Unbuilt: []string{"could not compile", "no test target named"}}},
		Canary: rustCanary,
		// Tests of a crate are in tests/, beside its manifest.
		Home: func(file string) bool { return path.Base(file) == "Cargo.toml" && !match.Within(file, match.Foreign) },
	}
}

func rustTools() []Tool {
	return []Tool{{
		Name: "cargo", Usual: true,
		Setup: []Line{{If: fileClue("Cargo.lock"), Shell: "cargo fetch --locked"}, {Shell: "cargo fetch"}},
		Lock:  []string{"Cargo.lock"}, MakeLock: "cargo generate-lockfile",
		Gate:    []Line{{Shell: "cargo test"}},
		Caches:  []string{".cargo/registry", ".cargo/git/db"},
		Image:   Image{Packages: []string{"cargo", "gcc", "libc6-dev"}},
		Manager: Manager{Program: "rustup", Variable: "RUSTUP_HOME", Folder: ".rustup"},
		Reads: []Fetch{{Commands: []string{"cargo fetch"}, Reads: Reads{
			Files: []string{"Cargo.toml", "Cargo.lock", ".cargo/", "rust-toolchain", "rust-toolchain.toml"},
		}}},
		Lacks: sameReason("it cannot say which registry it uses", NoHosts),
	}}
}

func rustCanary(p Site) []Canary {
	name := p.Suffix + ".rs"
	if p.Beside == "" {
		// A manifest of only a workspace has no tests. A manifest may also turn off test discovery.
		if !strings.Contains(string(p.Text), "[package]") {
			return nil
		}
		name = "tests/" + name
	}
	return []Canary{{Path: name, Content: []byte(`#[test]
fn ` + p.Suffix + `() {
    panic!("` + p.Message() + `");
}
`)}}
}
