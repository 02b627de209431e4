// Package named lists the files of a checkout that the user's own git runs or obeys, and those that its caller names. It only
// reads, and is safe for concurrent use. Its caller is the policy, which keeps agents from changing these files.
package named

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree/git"
)

// File is a file or folder of a checkout that a setting names: whoever changes it controls the program that has the setting. That
// is the user's own git, for its configuration and the links in the hooks folder, or the program of the caller.
type File struct {
	Path    string // relative to the top of the checkout, with slashes
	Setting string // the setting that names it, such as "core.hookspath"
}

// Files lists the files that the configuration and the hooks folder name inside the user's checkouts: the one at top, and
// those that git knows of. It adds the files that the caller names, whose paths may be absolute.
func Files(ctx context.Context, g git.Runner, top string, also ...File) ([]File, error) {
	settings, err := g.Settings(ctx)
	if err != nil {
		return nil, err
	}
	var n collector
	n.home, _ = os.UserHomeDir() // without a home, no path is below it
	for _, dir := range append(g.UserCheckouts(), top) {
		n.tops = append(n.tops, dir)
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			n.tops = append(n.tops, real)
		}
	}
	for _, s := range settings {
		n.addSetting(s.Setting, filepath.Dir(s.Origin))
	}
	n.addHooks(filepath.Join(g.Common(), "hooks"))
	for _, f := range also {
		n.add(f.Setting, n.absolutePaths(f.Path, n.tops...)...)
	}
	return n.found, nil
}

// collector collects the files that settings name.
type collector struct {
	home  string
	tops  []string // top folders of checkouts
	found []File
}

// addSetting adds the files that one setting names; from is the folder of the setting's file. Which settings run a program
// depends on git and on other tools that read its configuration. So every value counts as a command unless it is known not
// to be one.
func (n *collector) addSetting(s git.Setting, from string) {
	section, name, key := s.Split()
	if address, ok := strings.CutPrefix(name, "ext::"); ok && section == "url" {
		n.addCommand(s.Name, address, true)
	}
	if address, ok := strings.CutPrefix(s.Value, "ext::"); ok {
		n.addCommand(s.Name, address, true)
		return
	}
	switch {
	case (section == "include" || section == "includeif") && key == "path":
		n.add(s.Name, n.absolutePaths(s.Value, from)...)
	case isPathSetting(s.Name, key):
		// Git resolves the path from the top of the checkout.
		n.add(s.Name, n.absolutePaths(s.Value, n.tops...)...)
		n.addCommand(s.Name, s.Value, true)
	case section == "alias" && !strings.HasPrefix(s.Value, "!"), section == "branch", isTextSetting(key):
	default:
		n.addCommand(s.Name, s.Value, section != "alias") // people run aliases themselves
	}
}

// isPathSetting reports whether the value of a setting is a single path.
func isPathSetting(name, key string) bool {
	return slices.Contains([]string{
		"core.hookspath", "core.attributesfile", "core.excludesfile", "core.fsmonitor", "commit.template", "init.templatedir",
		"mailmap.file", "blame.ignorerevsfile", "fsck.skiplist", "fetch.fsck.skiplist", "receive.fsck.skiplist",
	}, name) || slices.Contains([]string{
		"program", "allowedsignersfile", "revocationfile", "cookiefile", "sslcert", "sslkey", "sslcainfo", "sslcapath",
	}, key)
}

// isTextSetting reports whether settings with this key hold text with slashes, and neither a program nor a file of the
// checkout.
func isTextSetting(key string) bool {
	return slices.Contains([]string{
		"fetch", "push", "merge", "remote", "url", "pushurl", "insteadof", "pushinsteadof", "description", "name", "email",
		"pretty", "format", "xfuncname", "funcname", "wordregex",
	}, key)
}

// absolutePaths returns the absolute paths that path may stand for, relative to each folder of from.
func (n *collector) absolutePaths(path string, from ...string) (all []string) {
	path = strings.TrimPrefix(path, ":(optional)")
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(n.home, rest)
	}
	switch {
	case path == "":
	case filepath.IsAbs(path):
		all = append(all, path)
	default:
		for _, dir := range from {
			all = append(all, dir+"/"+path) // not cleaned: ".." after a link means the parent of the link's target
		}
	}
	return all
}

// add records those paths that are inside a checkout: by their own names, by the targets of links, and the links
// themselves.
func (n *collector) add(setting string, paths ...string) {
	for _, path := range paths {
		spellings := []string{path, git.Resolved(path)}
		for i, c := range path {
			if _, err := os.Readlink(path[:i]); c == '/' && err == nil {
				spellings = append(spellings, path[:i])
			}
		}
		for _, path := range spellings {
			for _, top := range n.tops {
				rel, err := filepath.Rel(top, path)
				rel = filepath.ToSlash(rel)
				if err != nil || !filepath.IsLocal(rel) || rel == "." || strings.HasPrefix(rel+"/", ".git/") {
					continue
				}
				if !slices.ContainsFunc(n.found, func(f File) bool { return f.Path == rel }) {
					n.found = append(n.found, File{rel, setting})
				}
			}
		}
	}
}

// addHooks adds the targets, inside a checkout, of links in the hooks folder.
func (n *collector) addHooks(dir string) {
	link := func(path string, info fs.FileMode) {
		if to, err := os.Readlink(path); info&fs.ModeSymlink != 0 && err == nil {
			n.add("a link in .git/hooks", n.absolutePaths(to, filepath.Dir(path))...)
		}
	}
	if info, err := os.Lstat(dir); err == nil {
		link(dir, info.Mode())
	}
	entries, _ := os.ReadDir(dir) // without the folder there are no hooks
	for _, e := range entries {
		link(filepath.Join(dir, e.Name()), e.Type())
	}
}
