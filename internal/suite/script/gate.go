package script

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// maxFolders limits the folders that a gate may change to.
const maxFolders = 16

// Programs are the programs that may run scripts in a gate.
type Programs struct {
	// Interpreters are programs that take a script as argument.
	Interpreters []string
	// Runners maps programs to the files that tell them what to run: npm reads package.json.
	Runners map[string][]string
	// Tests reports whether a file is a test, for Follow. What a test imports is mostly the code under test.
	Tests func(file string) bool
}

// Named is the reason why a file, or a pattern of files, is part of the gate.
type Named struct {
	Why string
	Run bool // run as a script, whatever its extension; patterns count only then

	Folder bool // what is below it does not count: the lines change to it, or it is a bare word
}

// Files returns the files that the lines of a gate name, with reasons. It does not parse shell syntax: each word that looks
// like a path counts, in the root and in each folder to which the lines change.
func (p Programs) Files(gate []string) map[string]Named {
	files := map[string]Named{}
	folders := []string{""}
	var words []string
	bare := map[int]bool{} // indexes of words that may be a file without a dot or slash; "test" in "npm test" is not one
	for _, line := range gate {
		for _, command := range commands(line, p.Interpreters) {
			parts := command.words()
			if !command.executed && onlyReads(parts) {
				continue
			}
			program := programOf(command.text)
			for i, word := range parts {
				if slices.Contains(parts[:i], program) && p.Runners[path.Base(program)] == nil {
					bare[len(words)] = true
				}
				if i > 0 && slices.Contains([]string{"diff", "cmp"}, parts[0]) && !strings.HasPrefix(word, "-") && !path.IsAbs(word) {
					word = "./" + word // a file, whatever its name
				}
				words = append(words, word)
			}
			words = append(words, "")
		}
	}
	for i, word := range words {
		if i > 0 && slices.Contains(changesFolder(), words[i-1]) && len(folders) < maxFolders {
			for _, folder := range folders {
				folders = append(folders, path.Join(folder, word))
			}
		}
	}
	before := "" // the word before the one that is added
	add := func(file, reason string, run bool) {
		for _, folder := range folders {
			changes := slices.Contains(changesFolder(), before) || !run && !strings.ContainsAny(file, "/.") && !takesFile(before, p.Interpreters)
			file := path.Join(folder, file)
			if n, ok := files[file]; (!ok || n.Folder && !changes) && file != "." && !strings.HasPrefix(file, "..") && !path.IsAbs(file) {
				files[file] = Named{reason, run, changes}
			}
		}
	}
	for _, line := range gate {
		for _, word := range scriptWords(line, true, p.Interpreters) {
			add(strings.TrimPrefix(word, "/"), "named by the gate", true)
		}
	}
	for i, word := range words {
		if (strings.ContainsAny(word, "/.") || bare[i]) && word != "" && !strings.HasPrefix(word, "-") ||
			word != "" && takesFile(before, p.Interpreters) {
			add(word, "named by the gate", false)
		}
		if before == "-m" { // python -m tools.check
			module := strings.ReplaceAll(word, ".", "/")
			add(module+".py", "named by the gate", false)
			add(module+"/__main__.py", "named by the gate", false)
		}
		for _, file := range p.Runners[path.Base(word)] {
			add(file, "tells "+path.Base(word)+" of the gate what to run", false)
		}
		before = word
	}
	return files
}

// programOf returns the word of a command that names its program.
func programOf(text string) string {
	for word := range strings.FieldsSeq(text) {
		if name, _, sets := strings.Cut(word, "="); !startsCommand(word) && (!sets || strings.ContainsAny(name, `"'/$`)) {
			return strings.Trim(word, `"'`)
		}
	}
	return ""
}

// changesFolder returns the words that precede a folder in which the rest of the command runs.
func changesFolder() []string {
	return []string{"cd", "pushd", "-C", "--dir", "--directory", "--prefix", "--cwd"}
}

// maxFiles limits the number of files that Follow reads.
const maxFiles = 200

// Follow returns the lines of a gate, and one more line for each script, or pattern of scripts, that its scripts run or
// read, directly or indirectly, as far as their texts show. list returns the files of the repository. read returns the
// content of a file and whether it exists.
func (p Programs) Follow(gate []string, list func() []string, read func(file string) (text []byte, ok bool)) []string {
	seen := map[string]bool{}
	var queue []string // scripts to read
	patterns, lines := 0, len(gate)+maxFiles
	add := func(file string, run bool) (found bool) {
		if seen[file] || len(queue) >= maxFiles || len(gate) >= lines {
			return false
		}
		seen[file] = true
		if run && IsPattern(file) && patterns < maxFiles {
			patterns++
			for _, f := range list() {
				if doublestar.MatchUnvalidated(file, f) {
					found = true
					queue = append(queue, f)
				}
			}
		}
		if _, ok := read(file); ok {
			found = true
			if run || isScript(file) {
				queue = append(queue, file)
			}
		}
		return found
	}
	start := p.Files(gate)
	for _, file := range slices.Sorted(maps.Keys(start)) {
		add(file, start[file].Run)
	}
	done := map[string]bool{}
	for n := 0; n < len(queue) && n < maxFiles; n++ {
		if text, ok := read(queue[n]); ok && !done[queue[n]] {
			done[queue[n]] = true
			for _, c := range p.calls(queue[n], string(text)) {
				if add(c.file, c.run) {
					gate = append(slices.Clip(gate), ". "+c.file)
				}
			}
		}
	}
	return gate
}

// call is a script that another script may run or read.
type call struct {
	file string
	run  bool // see Named
}

func isYAML(file string) bool { return slices.Contains([]string{".yml", ".yaml"}, path.Ext(file)) }

// key matches the key before a value of configuration.
var key = pattern.Lazy(`(?m)^[ \t{]*(?:-[ \t]+)?(?:"?[\w.-]+"?[ \t]*[:=][ \t]+)?`)

// calls returns the scripts that a script may run or read: each word that looks like a script, or is in the place of one,
// relative to the root and to the script's folder.
func (p Programs) calls(from, text string) (found []call) {
	folder := path.Dir(from)
	yaml := isYAML(from)
	configuration := yaml || slices.Contains([]string{".toml", ".json"}, path.Ext(from))
	if configuration {
		text = key().ReplaceAllString(text, "")
	}
	add := func(word string, run bool) {
		for i, file := range []string{path.Join(folder, word), path.Join(word), path.Join(folder, path.Base(word))} {
			if i == 2 && IsPattern(word) {
				break
			}
			if file = strings.TrimPrefix(file, "/"); file != "." && file != "" && !strings.HasPrefix(file, "..") {
				found = append(found, call{file, run})
			}
		}
	}
	shell := isShell(from, text)
	for _, word := range scriptWords(text, shell, p.Interpreters) {
		if ending := path.Ext(word); configuration { // other words and patterns only say for which files
			if IsPattern(word) && (!slices.Contains([]string{".sh", ".bash", ".bats"}, ending) || strings.Contains(word, "**")) ||
				ending != "" && !slices.Contains(endings(), ending) {
				continue
			}
		}
		if !IsPattern(word) || shell && strings.Trim(word, "*?.[]/") != "" {
			add(word, true)
		}
	}
	if !shell && p.Tests(from) {
		return found
	}
	for _, file := range modules(folder, text) {
		if file != "" && !strings.HasPrefix(file, "..") {
			found = append(found, call{file, false})
		}
	}
	for _, command := range commands(withoutLists(text), p.Interpreters) {
		for n, word := range strings.FieldsFunc(command.text, func(r rune) bool { return strings.ContainsRune(" \t\r\"'<>=$,@", r) }) {
			for _, file := range p.Runners[path.Base(word)] {
				if n == 0 {
					add(file, false)
				}
			}
			switch {
			case strings.HasPrefix(word, "./"), strings.HasPrefix(word, "../"):
				add(word, false)
				for _, ending := range endings() {
					add(word+ending, false)
				}
				if yaml { // an action
					add(word+"/action.yml", true)
					add(word+"/action.yaml", true)
				}
			case yaml && isYAML(word) && !strings.HasPrefix(word, "*"):
				add(word, true)
			case slices.Contains(endings(), path.Ext(word)), n == 0 && strings.Contains(word, "/") && (!configuration || path.Ext(word) == ""):
				add(word, false)
			}
		}
	}
	return found
}
