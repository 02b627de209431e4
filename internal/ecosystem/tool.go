package ecosystem

import (
	"slices"
	"strings"
)

// Tool is a package manager or build tool: what shows it, and what is proposed for projects with it. Each of its parts is there,
// or Lacks says why not.
type Tool struct {
	Name string
	// Markers are files that show it.
	Markers []string
	// Unless are clues of which each shows that it is another tool's project.
	Unless []Clue
	// Usual says that it is taken where no tool's files are there.
	Usual bool
	// Setup are shell lines that fetch what a project depends on, and Gate those that test it: the first that fits is proposed. They
	// leave nothing in the worktree that git would see, so that they do the same in an agent's worktree and on a clean checkout.
	Setup, Gate []Line
	// Note explains what a reader of the proposed setup would ask; empty: nothing.
	Note string
	// Lock are names of the file in which it notes what it fetched. Setup or Gate makes the first where none is there, and MakeLock is
	// how a person makes it; empty: neither of them does.
	Lock     []string
	MakeLock string
	// Hosts are how it is asked where it fetches from. For a tool that cannot say, a refused connection names them.
	Hosts []Ask
	// Caches are folders below a home in which it keeps what it fetches and compiles, by its content or version: what is there too
	// much changes no result. A folder in which it also keeps what a project has installed is none.
	Caches []string
	// Reads are what lines of setup read of a project, also lines that a person wrote.
	Reads []Fetch
	// Image is what an image needs to run Setup and Gate.
	Image Image
	// Manager may have installed its programs.
	Manager Manager
	// Lacks says of parts that are empty why they are.
	Lacks map[Part]string
}

// Image is what is added to an image of Debian 13 with Node.js and npm.
type Image struct {
	Packages []string // of Debian
	Lines    []string // shell lines for root, after the packages
	Missing  []string // programs that neither has, which a person has to install
}

// Manager is a program that installs versions of a tool, and that the tool's programs are links to.
type Manager struct {
	Program  string
	Variable string // names the folder of what it has installed
	Folder   string // that folder below a home, where the variable is not set
}

// Part is a part of what is known of a tool, as one that it may lack.
type Part string

// The parts.
const (
	NoSetup  Part = "setup"
	NoGate   Part = "gate"
	NoHosts  Part = "hosts"
	NoCaches Part = "caches"
	NoReads  Part = "reads"
	NoImage  Part = "image"
)

// lacking is one reason for parts that a tool lacks; without parts, for all.
func lacking(why string, parts ...Part) map[Part]string {
	if len(parts) == 0 {
		parts = []Part{NoSetup, NoGate, NoHosts, NoCaches, NoReads, NoImage}
	}
	all := map[Part]string{}
	for _, part := range parts {
		all[part] = why
	}
	return all
}

// Line is a shell line for projects with all clues in If and none in Unless.
type Line struct {
	If, Unless []Clue
	Shell      string // empty: no line is needed
}

// Clue is that one of the files is there, with one of the words in it. Files are patterns of fs.Glob in the folder of the project.
// Without words the text does not matter. A word that begins with a line end also fits the first line.
type Clue struct{ Files, Words []string }

// having is the clue that one of the files is there.
func having(files ...string) []Clue { return []Clue{{Files: files}} }

// Ask is how a tool is asked where it fetches from. The answer is addresses or host names, with commas, bars or spaces between
// them.
type Ask struct {
	Argv []string
	// Name is the variable by which the answer reaches the tool in a sandbox, which has none of the user's settings.
	Name string
	// Fallback says that it is asked only where no ask before it has an answer.
	Fallback bool
}

// Registry is where a file of a project, in the form of INI or TOML, may name hosts to fetch from.
type Registry struct {
	File    string
	Section string   // without its brackets; empty: any
	Keys    []string // a key, or what is behind its last colon
}

// Reads is what setup lines read of a project, where that is all that what they make depends on.
type Reads struct {
	// Files are patterns of the files, like those of [Group].
	Files []string
	// Unless are words of these files, but lock files, with which it depends on more, such as a script that npm runs when it
	// installs.
	Unless []string
	// Code: they run code of the project, which may leave anything in the home.
	Code bool
}

// Fetch is what commands that fetch dependencies read. A command is one of these, with no arguments but flags, or a line of Setup.
type Fetch struct {
	Commands []string
	Lines    []string // parts of lines of Setup, which no other line has
	Reads
}

// Depend reports that what setup makes depends on more than these files, by the text of one of them.
func (r Reads) Depend(file string, text []byte) bool {
	all := "\n" + string(text)
	return !strings.Contains(file, "lock") && slices.ContainsFunc(r.Unless, func(word string) bool { return strings.Contains(all, word) })
}
