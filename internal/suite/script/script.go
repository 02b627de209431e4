// Package script finds the scripts that shell lines and makefiles run, for package suite. It splits lines into words and
// does not parse their grammar. It is pure.
package script

import (
	"path"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/internal/pattern"
)

// computed matches an expression of a shell or make before the known rest of a path.
var computed = pattern.Lazy(`\$\([^()]*\)|\$\{?\w+\}?("?/)`)

// descriptor matches the number of a redirection's descriptor.
var descriptor = pattern.Lazy(`(^|\s)\d+([<>])`)

// withoutLists removes the brackets of lists of strings, such as ["sh", "a"] in Python. Those of a shell's test stay.
func withoutLists(text string) string {
	return strings.NewReplacer(`["`, ` "`, `['`, ` '`, `"]`, `" `, `']`, `' `).Replace(text)
}

// scriptWords returns the words of a text that are in the place of a script to run or read: after a shell, ".", "-f" or make's
// include. With shell, the text has lines for a shell. Patterns of files also count as the program of a command, and where the variable of a loop over them is.
func scriptWords(text string, shell bool, interpreters []string) (words []string) {
	text = strings.NewReplacer("\\\n", " ", "$(wildcard ", "", "${", "$", "$(MAKE)", "make").Replace(withoutLists(text))
	text = descriptor().ReplaceAllString(text, "$1$2")
	for _, text := range []string{text, computed().ReplaceAllString(text, `"$1`)} {
		loops := map[string][]string{}
		for _, command := range commands(text, interpreters) {
			parts := strings.FieldsFunc(command.text, func(r rune) bool { return strings.ContainsRune(" \t\r\"'<>=$,@", r) })
			for len(parts) > 0 && startsCommand(parts[0]) {
				parts = parts[1:]
			}
			if len(parts) == 0 {
				continue
			}
			switch {
			case command.executed && shell:
				words = append(words, slices.DeleteFunc(parts, func(word string) bool { return strings.HasPrefix(word, "-") })...)
			case onlyReads(parts):
			case len(parts) > 3 && parts[0] == "for" && parts[2] == "in":
				loops[parts[1]] = parts[3:]
			case slices.Contains([]string{"include", "-include", "sinclude"}, parts[0]):
				words = append(words, parts[1:]...)
			default:
				words = append(words, operands(parts, loops, interpreters)...)
			}
		}
	}
	return words
}

// operands returns the words for runs in one command.
func operands(parts []string, loops map[string][]string, interpreters []string) (words []string) {
	before := "" // empty: the next word is the program
	for _, word := range parts {
		file, joined := strings.CutPrefix(word, "-f")
		switch list, looped := loops[word]; {
		case word == "./": // the rest of the word is a variable
			continue
		case joined && file != "" && path.Base(parts[0]) == "make":
			words = append(words, file)
			continue
		case strings.HasPrefix(word, "-"):
			if !takesFile(word, interpreters) && !slices.Contains([]string{"-n", "-m", "--check"}, word) { // sh -n runs nothing
				continue
			}
		case before != "" && !takesFile(before, interpreters):
		case looped:
			words = append(words, list...)
			loops[word] = nil // add the list only once
		case before != "" || IsPattern(word) || strings.Contains(word, "/"):
			words = append(words, word)
		}
		before = word
	}
	return words
}

// startsCommand reports whether the word is a shell keyword before a command.
func startsCommand(word string) bool {
	return slices.Contains([]string{"!", "if", "then", "else", "elif", "while", "until", "do", "time"}, word)
}

// onlyReads reports whether the command only reads files as data, runs none of them, and compares with none.
func onlyReads(command []string) bool {
	for i, word := range command {
		if startsCommand(word) {
			continue
		}
		if strings.HasSuffix(word, "grep") && slices.ContainsFunc(command[i:], func(word string) bool { // with a file of patterns
			return strings.HasPrefix(word, "-f") || word == "--file"
		}) {
			return false
		}
		return slices.Contains([]string{
			"test", "[", "[[", "grep", "egrep", "fgrep", "rg", "cat", "head", "tail", "wc", "ls", "echo", "printf", "stat",
			"sha256sum", "shellcheck", "shfmt", "touch", "mkdir", "rm",
		}, path.Base(word))
	}
	return false
}

// takesFile reports whether a file follows the word, for example after an interpreter.
func takesFile(word string, interpreters []string) bool {
	if slices.Contains([]string{"-f", "--file", "--makefile", "--config", "-c", ".", "source"}, word) {
		return true
	}
	return slices.Contains(interpreters, path.Base(word))
}

// IsPattern reports whether the word is a file pattern.
func IsPattern(file string) bool { return strings.ContainsAny(file, "*?[") }

// isScript reports whether the file's content may show what else runs.
func isScript(file string) bool {
	ending := path.Ext(file)
	return ending == "" || slices.Contains(endings(), ending) || path.Base(file) == "package.json"
}

// isShell reports whether a script has lines for a shell, and not only the code of another language, in which a bar or a bracket means
// something else.
func isShell(file, text string) bool {
	first, _, _ := strings.Cut(text, "\n")
	if strings.HasPrefix(first, "#!") {
		return strings.Contains(first, "sh") || strings.Contains(first, "make")
	}
	return slices.Contains([]string{"", ".sh", ".bash", ".zsh", ".mk", ".bats"}, path.Ext(file)) &&
		!slices.Contains([]string{"Rakefile", "Gemfile"}, path.Base(file)) ||
		!slices.Contains(append(endings(), ".gemspec", ".rake", ".pm", ".PL", ".t", ".lua", ""), path.Ext(file))
}

// endings returns the file extensions of scripts.
func endings() []string {
	return []string{".sh", ".bash", ".zsh", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".ps1", ".mk", ".bats", ".awk",
		".mts", ".cts", ".tsx"}
}

// Names returns the plain words of the lines, without their digits: the names of programs, and of what they run. What only
// reads files, common words for tasks, targets of build tools, folders and choices of tests do not count.
func (p Programs) Names(lines []string) map[string]bool {
	names := map[string]bool{}
	for _, line := range lines {
		for _, command := range commands(line, p.Interpreters) {
			words := withoutKeywords(command.words())
			if onlyReads(words) {
				continue
			}
			for i, word := range words {
				argument := i > 0 && (p.Runners[words[0]] != nil || words[i-1] == "-k" || slices.Contains(changesFolder(), words[i-1]))
				if argument || strings.ContainsAny(word, "/.") || strings.HasPrefix(word, "-") {
					continue
				}
				for _, part := range NameParts(word) {
					if part = strings.TrimRight(part, "0123456789"); len(part) > 1 && !slices.Contains(tasks(), part) {
						names[part] = true
					}
				}
			}
		}
	}
	return names
}

// NameParts returns the parts of a name between characters that are neither letters nor digits, in lower case.
func NameParts(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r < '0' || r > '9' && r < 'a' || r > 'z' })
}

// tasks returns common words for what programs do, which are no names of programs.
func tasks() []string {
	return strings.Fields("all build check ci cd clean compile env exec false fix fmt format install lint run script scripts set setup src " +
		"start task test testing tests time true unit update verify version xargs")
}
