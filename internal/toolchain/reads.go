package toolchain

import (
	"slices"
	"strings"
)

// Reads is what setup lines read of a project, where that is all that what they make depends on.
type Reads struct {
	// Files are patterns of the files, like those of package ecosystem.
	Files []string
	// Unless are words of these files, but lock files, with which it depends on more, such as a script that npm runs when it
	// installs.
	Unless []string
	// Code: they run code of the project, which may leave anything in the home.
	Code bool
}

// fetch is what commands that fetch dependencies read. A command is one of these, with no arguments but flags, or a line that
// ralph proposes for a project.
type fetch struct {
	commands []string
	lines    []string // parts of proposed lines, which no other has
	Reads
}

func fetches() []fetch {
	scripts := []string{`"preinstall"`, `"install"`, `"postinstall"`, `"preprepare"`, `"prepare"`, `"postprepare"`, `"prepublish"`, `"file:`, `"pnpmfile`}
	node := func(more ...string) Reads {
		return Reads{Files: append(more, "package.json", ".npmrc", "patches/"), Unless: scripts}
	}
	modules := []string{"go.mod", "go.sum", "go.work", "go.work.sum"}
	return []fetch{
		{lines: []string{"go vet ./...; go test -run '^$'"}, Reads: Reads{Files: modules, Code: true}},
		{commands: []string{"go mod download"}, Reads: Reads{Files: modules}},
		{commands: []string{"npm ci", "npm install"}, Reads: node("package-lock.json", "npm-shrinkwrap.json")},
		{commands: []string{"pnpm install"}, Reads: node("pnpm-lock.yaml", "pnpm-workspace.yaml")},
		{commands: []string{"yarn install", "yarn"}, Reads: node("yarn.lock", ".yarnrc", ".yarnrc.yml", ".yarn/")},
		{commands: []string{"bun install"}, Reads: node("bun.lock", "bun.lockb", "bunfig.toml")},
		{lines: []string{"pip install --quiet -r requirements"}, Reads: Reads{
			Files:  []string{"requirements*.txt", "requirements/", "constraints*.txt", "pip.conf"},
			Unless: []string{"\n-e", "\n--editable", "\n.", "\n/", "file:"},
		}},
		{commands: []string{"uv sync"}, Reads: Reads{
			Files: []string{"pyproject.toml", "uv.lock", "uv.toml", ".python-version"}, Unless: []string{"[build-system]", "path =", "workspace = true"},
		}},
		{commands: []string{"cargo fetch"}, Reads: Reads{Files: []string{"Cargo.toml", "Cargo.lock", ".cargo/", "rust-toolchain", "rust-toolchain.toml"}}},
		{lines: []string{`BUNDLE_PATH="$HOME/.bundle" bundle install`}, Reads: Reads{Files: []string{"Gemfile", "Gemfile.lock", "gems.rb", "gems.locked", "*.gemspec", ".ruby-version", ".bundle/"}}},
		{commands: []string{"composer install"}, Reads: Reads{
			Files: []string{"composer.json", "composer.lock", "auth.json"}, Unless: []string{`"scripts"`, `"classmap"`, `"path"`},
		}},
	}
}

// ReadsOf is what setup lines read; ok is false where that is not known.
func ReadsOf(setup []string) (all Reads, ok bool) {
	proposed := proposedLines()
	for _, line := range setup {
		if inner, below := strings.CutPrefix(line, "(cd "); below && strings.HasSuffix(inner, ")") {
			if _, command, one := strings.Cut(strings.TrimSuffix(inner, ")"), " && "); one {
				line = strings.TrimSuffix(strings.TrimPrefix(command, "("), ")")
			}
		}
		i := slices.IndexFunc(fetches(), func(f fetch) bool { return f.is(line, slices.Contains(proposed, line)) })
		if i < 0 {
			return Reads{}, false
		}
		all.Files = append(all.Files, fetches()[i].Files...)
		all.Unless = append(all.Unless, fetches()[i].Unless...)
		all.Code = all.Code || fetches()[i].Code
	}
	return all, len(setup) > 0
}

func (f fetch) is(line string, proposed bool) bool {
	has := func(part string) bool { return strings.Contains(line, part) }
	if proposed && slices.ContainsFunc(f.lines, has) {
		return true
	}
	return !strings.ContainsAny(line, "&|;<>$`()\\\n") && slices.ContainsFunc(f.commands, func(command string) bool {
		rest, ok := strings.CutPrefix(line, command)
		return ok && (rest == "" || rest[0] == ' ') && !slices.ContainsFunc(strings.Fields(rest), func(word string) bool { return word[0] != '-' })
	})
}

// proposedLines are all setup lines that are ever proposed.
func proposedLines() (all []string) {
	for _, t := range tools() {
		for _, c := range t.setup {
			if c.line != "" {
				all = append(all, c.line)
			}
		}
	}
	return all
}

// Depend reports that what setup makes depends on more than these files, by the text of one of them.
func (r Reads) Depend(file string, text []byte) bool {
	all := "\n" + string(text)
	return !strings.Contains(file, "lock") && slices.ContainsFunc(r.Unless, func(word string) bool { return strings.Contains(all, word) })
}
