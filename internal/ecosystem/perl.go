package ecosystem

import (
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
)

func perl() Ecosystem {
	return Ecosystem{
		Name:    "perl",
		Markers: []string{"cpanfile", "Makefile.PL", "Build.PL", "dist.ini", "minil.toml"},
		Tools: []Tool{{Name: "cpan", Usual: true,
			Lacks: sameReason("its modules are installed in many ways: by the system, cpanm, carton or Dist::Zilla")}},
		Checkers: strings.Fields("prove perlcritic perltidy yath"),
		Groups: []Group{
			{Role: Test, Files: []string{"*.t"}, Reason: "holds Perl tests"},
			{Role: Test, Files: []string{"/t/", "/xt/"}, Reason: "belongs to Perl tests"},
			{Role: TestConfig, Files: []string{".proverc", ".yath.rc", ".perlcriticrc", ".perltidyrc"}, Reason: "configures a check of Perl code"},
			{Role: Build, Files: []string{"cpanfile", "cpanfile.snapshot", "Makefile.PL", "Build.PL", "/dist.ini", "minil.toml", "/inc/"},
				Reason: "says how Perl code is built"},
		},
		Runners: map[string][]string{"prove": {".proverc"}, "yath": {".yath.rc"}, "dzil": {"dist.ini"}},
		Shadows: Shadows{Standard: strings.Fields(perlStandard)},
		Imports: Imports{Read: perlImports, Endings: []string{".pm"}, Beside: true, Roots: []string{"lib", "t/lib", "inc", "blib/lib"}},
		Sources: []string{"*.pl", "*.pm", "*.t", "*.PL", "cpanfile"},
		Syntax: lex.Syntax{Heredocs: true, Regexps: true, Spans: []lex.Span{
			{Open: "\n=head", Close: "\n=cut", Comment: true, Lines: true},
			{Open: "\n=pod", Close: "\n=cut", Comment: true, Lines: true},
			{Open: "#", Close: "\n", Comment: true, Apart: true},
			{Open: `"`, Close: `"`, Escape: true, Lines: true},
			{Open: "'", Close: "'", Escape: true, Lines: true},
		}},
		Tests:      []string{`subtest ="`},
		Skips:      []string{"skip_all", "plan skip_all", "TODO :", "SKIP :"},
		Assertions: []string{"ok (", "is (", "isnt (", "is_deeply (", "like (", "unlike (", "cmp_ok (", "isa_ok (", "throws_ok {", "dies_ok {"},
		Shapes: []Shape{
			{Kind: EarlyExit, Has: []string{"exit ( 0 )", "exit 0", "exit ;"}, Detail: "ends the process with success"},
			{Kind: EarlyExit, Main: true, Has: []string{"END {", "_exit ("}, Detail: "takes part in how the process ends"},
			{Kind: TestAware, Main: true, Roles: []Role{None}, Has: []string{"HARNESS_ACTIVE", `"HARNESS_ACTIVE"`}, Detail: "asks whether it runs under test"},
		},
	}
}

// perlStandard lists the first parts of the names of Perl's own modules, without those for tests.
const perlStandard = "strict warnings utf8 parent base lib constant vars overload feature integer bytes locale mro open sort subs threads " +
	"version autodie bigint bignum bigrat charnames diagnostics encoding experimental fields filetest if less re sigtrap vmsish Archive Attribute " +
	"AutoLoader B Benchmark CPAN Carp Class Compress Config Cwd DB_File Data Devel Digest Dumpvalue DynaLoader English Env Errno Exporter " +
	"ExtUtils Fcntl File FileCache FileHandle Filter FindBin Getopt HTTP Hash I18N IO IPC JSON List Locale MIME Math Memoize Module NEXT Net " +
	"Opcode POSIX Params Parse Perl PerlIO Pod SDBM_File Safe Scalar Search SelectSaver SelfLoader Socket Storable Sub Symbol Sys Term Text " +
	"Thread Tie Time UNIVERSAL Unicode User XSLoader"

// perlImports reads use and require of modules.
func perlImports(s lex.Source) (all []Import) {
	for i := range s.Tokens {
		if !s.Is(i, "use") && !s.Is(i, "require") && !s.Is(i, "no") {
			continue
		}
		var parts []string
		for at := i + 1; wordAt(s, at) != ""; at += 3 {
			if parts = append(parts, wordAt(s, at)); !s.Is(at+1, ":") || !s.Is(at+2, ":") {
				break
			}
		}
		if name := strings.Join(parts, "/"); strings.Trim(name, "v0123456789_") != "" { // use v5.36
			all = append(all, Import{Name: name})
		}
	}
	return all
}
