// Package suite examines the checks of a repository: which role a file has ([RoleOf]), how many tests it has ([Count]), what
// a change did to the checks ([Compare]) and which command runs the tests of one file ([RerunOf]). It also writes tests that
// must fail ([Canaries]). Its knowledge of languages and tools is the data of package ecosystem.
//
// It reads text that agents wrote. Its results are facts for a person or a stage to judge: lists can be evaded, so nothing
// here proves that checks are sound. All functions are pure, linear in their input, and safe for concurrent use.
package suite

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
	"github.com/ralph-pool/ralph/internal/suite/script"
)

// RoleOf returns the role of a file (a slash-separated path from the root) and the reason in words, or an empty reason if it has
// no role. gate are the lines of the gate. Scripts that these lines call are found, scripts that those call are not; see [Follow].
func RoleOf(file string, gate []string) (ecosystem.Role, string) { return roles(gate)(file) }

// roles returns RoleOf for a given gate.
func roles(gate []string) func(file string) (ecosystem.Role, string) {
	all := ecosystem.All()
	files, named := programs().Files(gate), programs().Names(gate)
	return func(file string) (ecosystem.Role, string) {
		file = path.Clean(file)
		if n, ok := files[file]; ok {
			return ecosystem.GateScript, n.Why
		}
		for pattern, n := range files {
			if n.Run && script.IsPattern(pattern) && doublestar.MatchUnvalidated(pattern, file) {
				return ecosystem.GateScript, n.Why
			}
		}
		var best ecosystem.Group
		for _, e := range all {
			for _, g := range e.Groups {
				if (g.First || g.Role > best.Role) && match.Any(g.Files, file) {
					if g.First {
						return g.Role, g.Reason
					}
					best = g
				}
			}
		}
		if module, ok := shadowed(file, all); ok && best.Role <= ecosystem.Environment {
			return ecosystem.Environment, "takes the place of the module " + module
		}
		if best.Role == ecosystem.None && (configures(file, all) || settings(file, named)) {
			return ecosystem.TestConfig, "is named like the configuration of a check"
		}
		return best.Role, best.Reason
	}
}

// configures reports whether a file is the hidden form of a known configuration of checks, or the plain form of a hidden one, or stands
// in the top folder and has the name of a check in its own. Later versions of tools read files that no list has.
func configures(file string, all []ecosystem.Ecosystem) bool {
	folder, base := path.Split(file)
	other, hidden := strings.CutPrefix(base, ".")
	if !hidden {
		other = "." + base
	}
	words := script.NameParts(base)
	for _, e := range all {
		if slices.ContainsFunc(e.Groups, func(g ecosystem.Group) bool {
			return g.Role == ecosystem.TestConfig && match.Any(g.Files, folder+other)
		}) {
			return true
		}
		if folder == "" && !ecosystem.IsSource(file) && !match.Any(documents(), file) && slices.ContainsFunc(words, func(word string) bool {
			return slices.Contains(e.Checkers, word) || slices.Contains(e.Checkers, strings.TrimSuffix(word, "rc"))
		}) {
			return true
		}
	}
	return false
}

// settings reports whether a file in the top folder, or in .config, is named after a program of the gate. Source code also needs a
// word for settings in its name.
func settings(file string, programs map[string]bool) bool {
	folder, base := path.Split(file)
	page := slices.Contains([]string{".svg", ".css", ".html", ".sql"}, path.Ext(base))
	if folder != "" && folder != ".config/" || match.Any(documents(), file) || page || programs[base] {
		return false
	}
	name := strings.TrimSuffix(base, path.Ext(base))
	if name == "" { // .proverc
		name = base
	}
	named, setting := false, !ecosystem.IsSource(file)
	for _, word := range script.NameParts(name) {
		for _, ending := range []string{"", "rc", "file", "config", "conf"} {
			if program, ok := strings.CutSuffix(word, ending); ok && programs[strings.TrimRight(program, "0123456789")] {
				named, setting = true, setting || ending != ""
			}
		}
		setting = setting || slices.Contains([]string{"config", "conf", "setup"}, word)
	}
	return named && setting
}

// documents matches files for people to read.
func documents() []string {
	return []string{
		"*.md", "*.markdown", "*.rst", "*.adoc", "*.asciidoc", "*.png", "*.jpg", "*.jpeg", "*.gif", "*.webp", "*.pdf",
		"LICENSE*", "LICENCE*", "NOTICE*", "COPYING*", "AUTHORS*", "CHANGELOG*", "README*", "CODEOWNERS",
	}
}

// IsDocument reports whether the file, judged by its name, is for people to read and not used by programs.
func IsDocument(file string) bool {
	role, _ := RoleOf(file, nil)
	return role == ecosystem.None && match.Any(documents(), file)
}

// shadowed returns the module of a library that the file replaces.
func shadowed(file string, all []ecosystem.Ecosystem) (module string, ok bool) {
	for _, e := range all {
		if e.Shadows.Ending == "" {
			continue
		}
		folder, base := path.Split(file)
		name, isModule := strings.CutSuffix(base, e.Shadows.Ending)
		if isModule && slices.Contains(e.Shadows.Test, name) {
			return name, true
		}
		folders := strings.Split(strings.TrimSuffix(folder, "/"), "/")
		for i, f := range folders { // a file of a package: pytest/anything
			if i < 2 && slices.Contains(e.Shadows.Test, f) && isModule {
				return f, true
			}
		}
		inRoot := folder == "" || len(folders) == 1 && slices.Contains(e.Shadows.Roots, folders[0])
		if isModule && inRoot && slices.Contains(e.Shadows.Standard, name) {
			return name, true
		}
		// A package json/ in the root. Its other files have no effect without its __init__.
		if isModule && name == "__init__" && len(folders) == 1 && slices.Contains(e.Shadows.Standard, folders[0]) {
			return folders[0], true
		}
	}
	return "", false
}
