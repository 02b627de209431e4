// Package ecosystem knows the languages and tools that repositories are made of, as data: one file each. Package suite uses what it
// says of files and tests, and package toolchain what it says of tools.
//
// A list like this one can be evaded, so nothing here proves that checks are sound. All functions are pure and safe for
// concurrent use.
package ecosystem

import (
	"slices"
	"sync"

	"github.com/ralph-pool/ralph/internal/ecosystem/lex"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
)

// Ecosystem is what is known of a language and its tools. Its patterns of files are those of [Group]; its patterns of
// text are those of [lex.Patterns].
type Ecosystem struct {
	// Name is stable and short: "go", "javascript".
	Name string
	// Markers are files that show the ecosystem.
	Markers []string
	// Alone says that nothing of it is proposed beside another ecosystem.
	Alone bool
	// Tools are its package managers and build tools, the most telling first. They do the same in different ways.
	Tools []Tool
	// Asked are variables, NAME=VALUE, with which its tools answer an [Ask] without more, and Bare those with which they answer
	// without the user's settings.
	Asked, Bare []string
	// Registries are where files of a project may name hosts to fetch from.
	Registries []Registry
	// Inputs are files, besides those of the role [Build], that setup may read.
	Inputs []string
	// Groups give files their roles, the first match of the strongest role.
	Groups []Group
	// Runners are programs of gate lines with the files that tell them what to run: npm reads package.json.
	Runners map[string][]string
	// Interpreters are programs of gate lines whose argument is a script.
	Interpreters []string
	// Shadows are names of modules that a file or folder of the repository can take the place of: those of the test
	// libraries anywhere, those of the standard library only in the root and in folders that are import paths.
	Shadows Shadows

	// Sources are the files that Syntax and the patterns of text below are for.
	Sources []string
	Syntax  lex.Syntax
	// Inline says that tests also stand in files that are no test files.
	Inline bool
	// Body says how a test's body is delimited.
	Body Body
	// Tests, Skips, Focus and Assertions are one test, one mark or call that skips, one mark that leaves the other tests
	// out, and one assertion. In Tests a token with = before it is the test's name.
	Tests, Skips, Focus, Assertions []string
	// Helpers are patterns of text that make a file a helper of tests, whatever its name: what tests are written with. Perhaps
	// are those that other code has, too: they count in files of PerhapsFiles.
	Helpers, Perhaps, PerhapsFiles []string
	// Excluded reports a test file that the tools leave out as a whole; nil: they leave none out.
	Excluded func(path string, text []byte) bool
	// Main are patterns of text and MainFiles patterns of files of programs, which may end the process.
	Main, MainFiles []string
	// Shapes are what is worth a remark when a change adds it.
	Shapes []Shape

	// Retests run the tests of one file: the first that fits it.
	Retests []Retest
	// Canary writes tests that must fail, to be planted at a place; nil: there is no way to write one.
	Canary func(Site) []Canary
	// Home says whether a file is one beside which a test may be planted when there is no test there; nil: none is.
	Home func(path string) bool
}

// Shadows are modules of a language whose names a repository can take.
type Shadows struct {
	Ending   string   // of a module that is a file: ".py"
	Test     []string // modules of test libraries
	Standard []string // modules of the standard library
	Roots    []string // folders from which modules are imported, beside the root
}

// Body says how the body of a test is delimited.
type Body int

const (
	Braces Body = iota // { … }
	Indent             // a colon and an indented block
	End                // … end
)

// Shape is something in the text of a file that changes what a passing check means.
type Shape struct {
	Kind Kind
	// Has are patterns of text, of which one is enough.
	Has []string
	// With is needed too, and Without must be missing, anywhere in the file.
	With, Without []string
	// Roles are the roles of files in which it counts; none: all.
	Roles []Role
	// Main says that it counts in files of programs too.
	Main bool
	// Detail says what it means: "ends the process with success".
	Detail string
}

// Kind is a kind of finding. Package suite has more of them, which it finds without a [Shape].
type Kind string

// The kinds of findings that shapes are.
const (
	EarlyExit      Kind = "early-exit"      // the process may end before tests have failed
	NoTests        Kind = "no-tests"        // what runs the tests runs none
	RunnerHook     Kind = "runner-hook"     // code or configuration decides over tests
	TestAware      Kind = "test-aware"      // the code under test asks whether it is tested
	FailureIgnored Kind = "failure-ignored" // a failing command does not end the gate
)

// Retest is a template of a command that runs the tests of one file and, where its tools can, no others.
type Retest struct {
	// Gate is in a line of the gates that the template is for; empty: any.
	Gate string
	// Root are files of which one is in the folder where the command runs: the nearest above the tests. None: the top folder.
	Root []string
	// Fits reports whether such a file, by its text, has what the command runs; nil: any has.
	Fits func(text []byte) bool
	// Files are patterns of the test files that it can run; none: all.
	Files []string
	// Program is what runs them, and Wrapper a script that takes its place where the folder or one above has it.
	Program, Wrapper string
	// Line has {program} for the program or its wrapper, {file} for the path of the file, {dir} for that of its folder, {stem} for
	// its name without the ending, and {names} for a regular expression of its tests.
	Line string
	// Unnamed are patterns of tests that cannot be chosen by {names}, which is the expression of any name then.
	Unnamed []string
	// Unbuilt are texts of the output of tests that could not be built or loaded.
	Unbuilt []string
	// Empty are exit statuses, and Idle texts of the output, by which the tools say that no test ran.
	Empty []int
	Idle  []string
	// Unfound are texts by which tools that fail say that they have found no test.
	Unfound []string
}

// All returns every ecosystem that is known, in a stable order. The caller must not change what the values refer to.
func All() []Ecosystem { return known() }

//nolint:gochecknoglobals // read-only table
var known = sync.OnceValue(func() []Ecosystem {
	return []Ecosystem{golang(), javascript(), python(), rust(), java(), ruby(), php(), dotnet(), generic()}
})

// Recognise returns those of the ecosystems, which are [All] or others, that a folder with these files has. Tools of each are only
// those whose files are there, or the usual one.
func Recognise(all []Ecosystem, files []string) []Ecosystem {
	has := func(patterns []string) bool {
		return slices.ContainsFunc(files, func(file string) bool { return match.Any(patterns, file) })
	}
	var found []Ecosystem
	for _, e := range all {
		if !has(e.Markers) {
			continue
		}
		var tools []Tool
		for _, t := range e.Tools {
			if has(t.Markers) {
				tools = append(tools, t)
			}
		}
		if len(tools) == 0 {
			if i := slices.IndexFunc(e.Tools, func(t Tool) bool { return t.Usual }); i >= 0 {
				tools = e.Tools[i : i+1]
			}
		}
		e.Tools = tools
		found = append(found, e)
	}
	return found
}
