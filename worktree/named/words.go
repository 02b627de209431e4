package named

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// addCommand adds the files that a command names: its paths, its words that are files in a checkout or in a folder that the
// command mentions, and the files that make and Python look up themselves. With addFolders, it adds every folder that the
// command changes into. It need not be exact: no program of the configuration runs on the host among files that an agent
// can write.
func (n *collector) addCommand(setting, line string, addFolders bool) {
	for _, words := range commandWords(line) {
		folders := n.folders(setting, words, addFolders)
		python := false
		for i, word := range words {
			program := filepath.Base(word)
			python = python || strings.HasPrefix(program, "python")
			switch {
			case strings.Contains(word, "://"):
			case python && words[max(0, i-1)] == "-m":
				module, _, _ := strings.Cut(word, ".")
				n.addIn(setting, folders, module, module+".py")
			case program == "make" || program == "gmake":
				n.addIn(setting, folders, "Makefile", "makefile", "GNUmakefile")
			case strings.Contains(word, "/"):
				// A folder is usually an argument and not a program.
				n.add(setting, slices.DeleteFunc(n.absolutePaths(word, n.tops...), isDir)...)
			}
			if i > 0 { // the first word is looked up in PATH
				n.add(setting, slices.DeleteFunc(n.absolutePaths(word, folders...), func(path string) bool { return !isFile(path) })...)
			}
		}
	}
}

var quotes = strings.NewReplacer(`"`, "", "'", "", `\`, "") //nolint:gochecknoglobals // compiled on first use; nothing writes to it

// commandWords splits a command into words in two ways: with quotes as parts of words, and with quotes as separators.
func commandWords(line string) [][]string {
	for _, top := range []string{
		"$(git rev-parse --show-toplevel)", "`git rev-parse --show-toplevel`", "$(pwd)", "$PWD", "${PWD}",
		"$GIT_WORK_TREE", "${GIT_WORK_TREE}",
	} {
		line = strings.ReplaceAll(line, top, ".")
	}
	split := func(r rune) bool { return strings.ContainsRune(" \t\r\n\"'`;|&<>()=!$", r) }
	return [][]string{strings.FieldsFunc(quotes.Replace(line), split), strings.FieldsFunc(line, split)}
}

// folders returns the folders in which a command may look for a file.
func (n *collector) folders(setting string, words []string, addFolders bool) []string {
	all := slices.Clone(n.tops)
	for i, word := range words {
		attached, changesFolder := strings.CutPrefix(word, "-C")
		if changesFolder {
			word = attached
		}
		changesFolder = changesFolder || i > 0 && slices.Contains([]string{"cd", "pushd", "-C", "--directory"}, words[i-1])
		for _, path := range n.absolutePaths(word, n.tops...) {
			if !isDir(path) {
				continue
			}
			all = append(all, path)
			if changesFolder && addFolders {
				n.add(setting, path)
			}
		}
	}
	return all
}

// addIn adds the names in each of the folders.
func (n *collector) addIn(setting string, folders []string, names ...string) {
	for _, name := range names {
		n.add(setting, n.absolutePaths(name, folders...)...)
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
