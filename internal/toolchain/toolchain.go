// Package toolchain knows how the tools of projects fetch what a project depends on and run its tests, and where from. It
// proposes; a person decides. Its caller is internal/cli, for `ralph init` and `ralph doctor`.
//
// It runs no code of the project: the tools are asked for the user's own settings in an empty folder. Everything here is
// safe for concurrent use.
package toolchain

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem"
)

// Proposal is what the checks of a project need in a sandbox.
type Proposal struct {
	Tool  string   // "go", "npm"
	Setup []string // shell lines that fetch what it depends on; none: it depends on nothing
	Gate  []string // shell lines that test it; none: there is no telling
	asks  []ask
}

// tool is how a package manager or build tool is used. Lines are chosen by the files in the top folder of the project.
type tool struct {
	setup []choice
	gate  []choice
	asks  []ask
}

// choice is a line for projects with one of the files, whose text has one of the words; without files, for all. A word that
// begins with a line end also fits the first line.
type choice struct {
	files, words []string
	line         string // empty: no line is needed
}

// Propose looks at the files in the top folder of a project.
func Propose(top string) ([]Proposal, error) {
	entries, err := os.ReadDir(top)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if e.Type().IsRegular() {
			files = append(files, e.Name())
		}
	}
	var out []Proposal
	for _, found := range ecosystem.Recognise(files) {
		if found.Name == "generic" && len(out) > 0 {
			continue // a Makefile beside the project's own tool is no second project
		}
		for _, t := range found.Tools {
			use, ok := tools()[t.Name]
			if !ok {
				continue
			}
			p := Proposal{Tool: t.Name, asks: use.asks}
			p.Setup = choose(os.DirFS(top), use.setup)
			p.Gate = choose(os.DirFS(top), use.gate)
			out = append(out, p)
			break // the tools of an ecosystem do the same in different ways
		}
	}
	return out, nil
}

// choose is the line of the first choice that fits.
func choose(top fs.FS, choices []choice) []string {
	for _, c := range choices {
		if c.fits(top) {
			if c.line == "" {
				return nil
			}
			return []string{c.line}
		}
	}
	return nil
}

func (c choice) fits(top fs.FS) bool {
	if len(c.files) == 0 {
		return true
	}
	return slices.ContainsFunc(c.files, func(name string) bool {
		if info, err := fs.Stat(top, name); err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
			return false
		}
		text, err := fs.ReadFile(top, name)
		return err == nil && (len(c.words) == 0 || slices.ContainsFunc(c.words, func(w string) bool { return strings.Contains("\n"+string(text), w) }))
	})
}

// Programs are the programs that shell lines begin with, as far as their first words tell.
func Programs(lines []string) []string {
	var out []string
	for _, line := range lines {
		for _, part := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(";&|", r) }) {
			for word := range strings.FieldsSeq(part) {
				if name, _, set := strings.Cut(word, "="); set && name != "" && !strings.ContainsAny(name, `"'$/`) {
					continue // NAME=VALUE before the program
				}
				if plainName(word) && !slices.Contains(builtins, word) && !slices.Contains(out, word) {
					out = append(out, word)
				}
				break
			}
		}
	}
	return out
}

func plainName(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.+", r)
	}) && filepath.Base(word) == word && word != "." && word != ".."
}

//nolint:gochecknoglobals // read-only table
var builtins = strings.Fields("cd exec export set test true false echo printf if then else fi for do done while until case esac . source " +
	"command eval exit return read trap umask unset ulimit wait")
