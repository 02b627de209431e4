package suite

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
	"github.com/ralph-pool/ralph/internal/pattern"
)

// maxNames is the maximum size in bytes of the regular expression of test names.
const maxNames = 16 << 10

// Lines are the shell lines of a project's gate and setup.
type Lines struct{ Gate, Setup []string }

// RerunOf returns the template of the command that runs the tests of a file. Its Line is filled in, for a shell in the top
// folder. It returns false if no command is known. read reports whether a file exists; it must return the content at least
// of the files in RootsAbove.
func RerunOf(file string, text []byte, lines Lines, read func(string) ([]byte, bool)) (ecosystem.Retest, bool) {
	for _, t := range sourceOf(file).Retests {
		named, known := namedBy(t, file, lines)
		root, ok := rootOf(t, file, lines.Gate, read)
		if ok && known && (len(t.Files) == 0 || match.Any(t.Files, file)) {
			if named == "" {
				named = programOf(t, root, read)
			}
			t.Line = lineOf(t, file, root, text, named)
			return t, true
		}
	}
	return ecosystem.Retest{}, false
}

// namedBy reports whether a template fits the lines, and returns the program that they name. The line that runs in a folder above
// the file comes first. Of a line that runs elsewhere only a program without ../ counts.
func namedBy(t ecosystem.Retest, file string, lines Lines) (program string, ok bool) {
	list := lines.Gate
	if t.Setup {
		list = slices.Concat(lines.Gate, lines.Setup)
	}
	best := 0
	for _, line := range list {
		if t.Names == nil {
			break
		}
		m := t.Names().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		name, fit := m[1], 2
		if in := cdPattern().FindStringSubmatch(line); in != nil {
			if fit = 3; !strings.HasPrefix(file, path.Clean(in[1]+in[2])+"/") {
				if fit = 1; strings.HasPrefix(name, "../") {
					continue
				}
			}
		}
		if fit > best {
			best, program = fit, name
		}
	}
	if best > 0 {
		return program, true
	}
	known := t.Gate == "" || slices.ContainsFunc(lines.Gate, func(line string) bool { return strings.Contains(line, t.Gate) })
	return "", t.Names == nil && known
}

// RootsAbove returns the files whose content RerunOf reads if they exist.
func RootsAbove(file string) (list []string) {
	for _, t := range sourceOf(file).Retests {
		for _, dir := range parentFolders(file) {
			for _, name := range t.Root {
				if t.Fits != nil {
					list = append(list, path.Join(dir, name))
				}
			}
		}
	}
	return list
}

// parentFolders returns the folders above a file, the nearest first.
func parentFolders(file string) (list []string) {
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if list = append(list, dir); dir == "." || dir == "/" {
			return list
		}
	}
}

// cdPattern matches a gate line that begins with a change of folder.
var cdPattern = pattern.Lazy(`^\s*cd\s+(?:'([^']+)'|([\w./-]+))\s*(?:&&|;)`)

// rootOf returns the folder in which the command runs: the nearest one with a root file, or, for templates without root
// files, the folder in which the gate runs the tool.
func rootOf(t ecosystem.Retest, file string, gate []string, read func(string) ([]byte, bool)) (string, bool) {
	if len(t.Root) == 0 {
		for _, line := range gate {
			if in := cdPattern().FindStringSubmatch(line); in != nil && runsTests(t, line) {
				if dir := path.Clean(in[1] + in[2]); strings.HasPrefix(file, dir+"/") {
					return dir, true
				}
			}
		}
		return ".", true
	}
	for _, dir := range parentFolders(file) {
		if slices.ContainsFunc(t.Root, func(name string) bool {
			text, ok := read(path.Join(dir, name))
			return ok && (t.Fits == nil || t.Fits(text))
		}) {
			return dir, true
		}
	}
	return "", false
}

// runsTests reports whether the gate's line names what the template runs.
func runsTests(t ecosystem.Retest, line string) bool {
	return t.Gate != "" && strings.Contains(line, t.Gate) || t.Names != nil && t.Names().MatchString(line)
}

// programOf returns the command that runs the tests, relative to the folder root.
func programOf(t ecosystem.Retest, root string, read func(string) ([]byte, bool)) string {
	if t.Wrapper == "" {
		return t.Program
	}
	for dir, up := root, "./"; ; dir = path.Dir(dir) {
		if _, ok := read(path.Join(dir, t.Wrapper)); ok {
			return up + t.Wrapper
		}
		if dir == "." || dir == "/" {
			return t.Program
		}
		up = "../" + strings.TrimPrefix(up, "./")
	}
}

// lineOf fills in the template's line.
func lineOf(t ecosystem.Retest, file, root string, text []byte, program string) string {
	if root != "." {
		file = strings.TrimPrefix(file, root+"/")
	}
	base, dir := path.Base(file), path.Dir(file)
	if dir != "." {
		dir = "./" + dir
	}
	line := strings.NewReplacer("{program}", program, "{file}", Quote(file), "{dir}", Quote(dir), "{stem}", Quote(strings.TrimSuffix(base, path.Ext(base))),
		"{names}", Quote(namesIn(t, file, text))).Replace(t.Line)
	if root != "." {
		line = "cd " + Quote(root) + " && " + line
	}
	return line
}

// namesIn returns a regular expression that matches the file's tests.
func namesIn(t ecosystem.Retest, file string, text []byte) string {
	e := sourceOf(file)
	if len(t.Unnamed) > 0 && e.Syntax.Read(text).Has(t.Unnamed...) {
		return "."
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(examine(file, text).names)) {
		names = append(names, regexp.QuoteMeta(name))
	}
	if all := "^(" + strings.Join(names, "|") + ")$"; len(all) <= maxNames {
		return all
	}
	return "." // all tests of the folder: the names do not fit into a line
}

// Quote quotes a text as one word for a shell. It makes a text that looks like an option a path.
func Quote(s string) string {
	if strings.HasPrefix(s, "-") {
		s = "./" + s
	}
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("/._-+:@%,=", r) && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if plain {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
