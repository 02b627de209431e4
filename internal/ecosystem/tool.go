package ecosystem

import (
	"slices"
	"strings"
)

// Tool describes a package manager or build tool: how to recognise it, and what to propose for its projects. Lacks has the
// reason for each part that is empty.
type Tool struct {
	Name string
	// Markers are files that show the tool.
	Markers []string
	// Named are clues, each of which shows the tool in a project without any tool's markers.
	Named []Clue
	// Unless are clues, each of which shows that another tool is used.
	Unless []Clue
	// Usual means that the tool is the default of its ecosystem where no tool's markers are found.
	Usual bool
	// Setup are shell lines that fetch a project's dependencies, Gate lines that test it. The first that fits is proposed. They
	// leave nothing in the worktree that git would report, so they act the same in an agent's worktree and in a clean checkout.
	Setup, Gate []Line
	// Note explains the proposed setup to its reader. It may be empty.
	Note string
	// Lock are names of the tool's lock file. If none exists, Setup or Gate creates the first. MakeLock is the command with
	// which a person creates it. Both are empty if Setup and Gate create no lock file.
	Lock     []string
	MakeLock string
	// Hosts are commands that ask the tool where it fetches from. For a tool without them, a refused connection shows the host.
	Hosts []Ask
	// Caches are folders in the home where the tool keeps what it fetches and compiles, keyed by content or version, so that
	// extra entries change no result. Folders that also hold a project's installed packages do not count.
	Caches []string
	// Reads describes which files lines of setup read, including lines that a person wrote.
	Reads []Fetch
	// Image is what an image needs for Setup and Gate.
	Image Image
	// Manager is a program that may have installed the tool.
	Manager Manager
	// Lacks has the reason for each part that is empty.
	Lacks map[Part]string
}

// Image lists additions to an image of Debian 13 with Node.js and npm.
type Image struct {
	Packages []string // Debian packages
	Lines    []string // shell lines, run as root after the packages are installed
	Missing  []string // programs that neither provides; a person has to install them

	// Pinned returns the lines to use instead if PinFile, a file of the project, pins a version; nil: it does not.
	Pinned  func(text []byte) []string
	PinFile string
}

// Manager is a program that installs versions of a tool. The tool's programs are links to it.
type Manager struct {
	Program  string
	Variable string // environment variable with the folder of installed versions
	Folder   string // that folder relative to the home, if the variable is not set
}

// Part names a part of a Tool that may be empty.
type Part string

// The parts that a tool may lack.
const (
	NoSetup  Part = "setup"
	NoGate   Part = "gate"
	NoHosts  Part = "hosts"
	NoCaches Part = "caches"
	NoReads  Part = "reads"
	NoImage  Part = "image"
)

// sameReason gives one reason for the parts, or for all parts if none are named.
func sameReason(why string, parts ...Part) map[Part]string {
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

// Clue requires that one of the files exists and contains one of the words. Files are fs.Glob patterns in the project's
// folder. Without words any content fits. A word that begins with a line end also fits the first line.
type Clue struct{ Files, Words []string }

// fileClue is the clue that one of the files exists.
func fileClue(files ...string) []Clue { return []Clue{{Files: files}} }

// Ask is a command that asks a tool where it fetches from. The answer is addresses or host names, separated by commas, bars
// or spaces.
type Ask struct {
	Argv []string
	// Name is the variable that passes the answer to the tool in a sandbox, where the user's settings are missing.
	Name string
	// Fallback means that the command runs only if no earlier one has answered.
	Fallback bool
	// Folders means that the answer may also name folders of this host.
	Folders bool
	// Only means that the setting is a switch: if it is on, the tool uses none of the later settings.
	Only bool
}

// Registry is a setting in a project file, in INI or TOML format, that may name hosts to fetch from.
type Registry struct {
	File    string
	Section string   // without its brackets; empty: any
	Keys    []string // full keys, or the part after the last colon
}

// Reads lists what setup lines read of a project, for lines whose result depends on nothing else.
type Reads struct {
	// Files are patterns of the files, like those of [Group].
	Files []string
	// Unless are words in these files, except lock files, that show a further dependency, such as a script that npm runs
	// during the installation.
	Unless []string
	// Code means that the lines run code of the project, which may write anything to the home.
	Code bool
}

// Fetch describes what commands that fetch dependencies read. It applies to its Commands without arguments other than flags,
// and to the lines of Setup in Lines.
type Fetch struct {
	Commands []string
	Lines    []string // texts that identify lines of Setup
	Reads
}

// Depend reports whether the text of one of the files shows that the result of setup depends on more than these files.
func (r Reads) Depend(file string, text []byte) bool {
	all := "\n" + string(text)
	return !strings.Contains(file, "lock") && slices.ContainsFunc(r.Unless, func(word string) bool { return strings.Contains(all, word) })
}
