// Package ecosystem describes languages and their tools as data, one file for each language. Package suite uses what it says
// about files and tests, package toolchain what it says about tools.
//
// Such lists can be evaded, so nothing here proves that checks are sound. All functions are pure and safe for concurrent use.
package ecosystem

import (
	"regexp"
	"slices"
	"sync"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
)

// Ecosystem describes a language and its tools. Patterns of files have the syntax of [Group], patterns of text that of
// [lex.Patterns].
type Ecosystem struct {
	// Name is stable and short: "go", "javascript".
	Name string
	// Markers are files whose presence shows the ecosystem.
	Markers []string
	// Alone means that the ecosystem is proposed only where no other one is found.
	Alone bool
	// Tools are its package managers and build tools, those with the clearest markers first. They are alternatives.
	Tools []Tool
	// Asked are variables, as NAME=VALUE, that make the tools answer an [Ask] with nothing but the answer. Bare are
	// variables that make them ignore the user's settings.
	Asked, Bare []string
	// Registries are settings in files of a project that may name the hosts to fetch from.
	Registries []Registry
	// Inputs are files that setup may read, in addition to those of the role [Build].
	Inputs []string
	// Groups assign roles to files. The strongest role that matches counts, and its first match.
	Groups []Group
	// Checkers are the names of its test runners and other checks, as their configuration is named after them.
	Checkers []string
	// Runners maps programs of gate lines to the files that tell them what to run: npm reads package.json.
	Runners map[string][]string
	// Interpreters are programs of gate lines that take a script as argument.
	Interpreters []string
	// Shadows are modules that a file or folder of the repository can replace: test libraries anywhere, the standard library
	// only in the root and in import folders.
	Shadows Shadows
	// Imports says how files name modules.
	Imports Imports

	// Sources are the files to which Syntax and the patterns of text below apply.
	Sources []string
	Syntax  lex.Syntax
	// Inline means that files that are not test files may contain tests, too.
	Inline bool
	// Body is how the body of a test is delimited.
	Body Body
	// Tests, Skips, Focus and Assertions match a test, a mark or call that skips a test, a mark that restricts the run to
	// some tests, and an assertion. In Tests a token after = is the test's name.
	Tests, Skips, Focus, Assertions []string
	// Helpers are patterns of text, such as imports of a test library, that make a file a helper of tests, whatever its
	// name. Perhaps are patterns that other code has, too: they count only in PerhapsFiles.
	Helpers, Perhaps, PerhapsFiles []string
	// Excluded reports whether the tools ignore a test file altogether. nil: they ignore none.
	Excluded func(path string, text []byte) bool
	// Main (patterns of text) and MainFiles (patterns of files) match programs, which may end the process.
	Main, MainFiles []string
	// Shapes are the findings reported when a change adds them.
	Shapes []Shape

	// Retests are the commands that run the tests of one file. The first that fits is used.
	Retests []Retest
	// Canary writes tests that must fail, for a given place. nil: ralph cannot write one.
	Canary func(Site) []Canary
	// Home reports whether a canary may be added beside a file where no test exists yet. nil: beside none.
	Home func(path string) bool
}

// Shadows lists modules of a language that files of a repository can replace.
type Shadows struct {
	Ending   string   // file extension of a module: ".py"
	Test     []string // modules of test libraries
	Standard []string // modules of the standard library
	Roots    []string // folders, besides the root, from which modules are imported
}

// Body is how the body of a test is delimited.
type Body int

const (
	Braces Body = iota // { … }
	Indent             // a colon and an indented block
	End                // … end
)

// Shape is code or configuration that changes what a passing check means.
type Shape struct {
	Kind Kind
	// Has are patterns of text. One match is enough.
	Has []string
	// With must also match somewhere in the file, and Without must not match anywhere in it.
	With, Without []string
	// Roles are the roles of the files in which the shape counts. Empty: all.
	Roles []Role
	// Main means that the shape counts in programs, too.
	Main bool
	// Detail describes the effect: "ends the process with success".
	Detail string
}

// Kind is a kind of finding. Package suite has more kinds, which need no [Shape].
type Kind string

// The kinds of findings that shapes produce.
const (
	EarlyExit      Kind = "early-exit"      // the process may end before a test fails
	NoTests        Kind = "no-tests"        // the test runner runs no tests
	RunnerHook     Kind = "runner-hook"     // code or configuration changes which tests run or how they fail
	TestAware      Kind = "test-aware"      // the code under test detects that it is being tested
	FailureIgnored Kind = "failure-ignored" // a failing command does not end the gate
)

// Retest is a command template that runs the tests of one file and, where the tools can, no others.
type Retest struct {
	// Gate is a text that a gate line must contain for the template to apply. Empty: it always applies.
	Gate string
	// Names matches gate lines for which the template applies, instead of Gate. Its first group replaces {program}. With Setup
	// the lines of setup count, too.
	Names func() *regexp.Regexp
	Setup bool
	// Root are files that mark the folder where the command runs: the nearest folder above the tests that has one. Empty:
	// the top folder.
	Root []string
	// Fits reports whether such a file, by its content, supports the command. nil: every one does.
	Fits func(text []byte) bool
	// Files are patterns of the test files that the command can run. Empty: all.
	Files []string
	// Program runs the tests. Wrapper is a script that replaces it where the folder or one above has the script.
	Program, Wrapper string
	// Line is the command. It may contain {program} for the program or its wrapper, {file} for the file's path, {dir} for
	// its folder, {stem} for its name without the extension, and {names} for a regular expression of its tests.
	Line string
	// Unnamed are patterns of tests that {names} cannot select. For these, {names} matches every name.
	Unnamed []string
	// Unbuilt are texts in the output that show that tests could not be built or loaded.
	Unbuilt []string
	// Empty are exit statuses, and Idle texts in the output, that show that no test ran.
	Empty []int
	Idle  []string
	// Unstarted matches the output of a failed command that could not run tests at all: its runner is not installed, or refuses
	// its configuration. nil: only the exit statuses 126 and 127 show that.
	Unstarted func() *regexp.Regexp
	// Unfound are texts in the output of a failed command that show that it found no test.
	Unfound []string
}

// All returns every known ecosystem, in a stable order. The caller must not change the data that the values refer to.
func All() []Ecosystem { return known() }

//nolint:gochecknoglobals // read-only table
var known = sync.OnceValue(func() []Ecosystem {
	return []Ecosystem{golang(), javascript(), python(), rust(), java(), ruby(), perl(), php(), dotnet(), generic()}
})

// Recognise returns those of the given ecosystems ([All] or others) whose markers are among the files. The tools of each are
// reduced to those whose markers are there, or else to those that are named, or else to the usual one. there reports whether
// the project has a clue.
func Recognise(all []Ecosystem, files []string, there func(Clue) bool) []Ecosystem {
	has := func(patterns []string) bool {
		return slices.ContainsFunc(files, func(file string) bool { return match.Any(patterns, file) })
	}
	var found []Ecosystem
	for _, e := range all {
		if !has(e.Markers) {
			continue
		}
		var tools []Tool
		for _, shown := range []func(Tool) bool{
			func(t Tool) bool { return has(t.Markers) },
			func(t Tool) bool { return slices.ContainsFunc(t.Named, there) },
			func(t Tool) bool { return t.Usual },
		} {
			if len(tools) == 0 {
				tools = slices.DeleteFunc(slices.Clone(e.Tools), func(t Tool) bool { return !shown(t) })
			}
		}
		e.Tools = tools
		found = append(found, e)
	}
	return found
}
