// Package named lists the files of a checkout that the user's own git runs or obeys. It only reads, and is safe for concurrent
// use. Its caller is the policy on what agents may change.
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

// File is a file or folder of a checkout that the user's own git runs or obeys, because the configuration, or a link in
// the hooks folder, names it. Who changes it directs git.
type File struct {
	Path    string // from the top of the checkout, with slashes
	Setting string // what names it, such as "core.hookspath"
}

// Files lists what the configuration and the hooks folder name inside a checkout of the user's: the one whose top is given, and
// those that git knows.
func Files(ctx context.Context, g git.Runner, top string) ([]File, error) {
	settings, err := g.Settings(ctx)
	if err != nil {
		return nil, err
	}
	var n namer
	n.home, _ = os.UserHomeDir() // without one, nothing is in it
	for _, dir := range append(g.UserCheckouts(), top) {
		n.tops = append(n.tops, dir)
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			n.tops = append(n.tops, real)
		}
	}
	for _, s := range settings {
		n.setting(s.Setting, filepath.Dir(s.Origin))
	}
	n.hooks(filepath.Join(g.Common(), "hooks"))
	return n.found, nil
}

// namer collects the files that settings name.
type namer struct {
	home  string
	tops  []string // of checkouts
	found []File
}

// setting looks at one setting; from is the folder of its file. Which settings run a program changes with git and with the
// tools that read its configuration: so every value counts as a command that is not known to be something else.
func (n *namer) setting(s git.Setting, from string) {
	section, name, key := s.Split()
	if address, ok := strings.CutPrefix(name, "ext::"); ok && section == "url" {
		n.command(s.Name, address, true)
	}
	if address, ok := strings.CutPrefix(s.Value, "ext::"); ok {
		n.command(s.Name, address, true)
		return
	}
	switch {
	case (section == "include" || section == "includeif") && key == "path":
		n.add(s.Name, n.absolute(s.Value, from)...)
	case wholePath(s.Name, key):
		// Git looks from the top of the checkout.
		n.add(s.Name, n.absolute(s.Value, n.tops...)...)
		n.command(s.Name, s.Value, true)
	case section == "alias" && !strings.HasPrefix(s.Value, "!"), section == "branch", plainText(key):
	default:
		n.command(s.Name, s.Value, section != "alias") // people run aliases themselves
	}
}

// wholePath reports that the value of a setting is one path.
func wholePath(name, key string) bool {
	return slices.Contains([]string{
		"core.hookspath", "core.attributesfile", "core.excludesfile", "core.fsmonitor", "commit.template", "init.templatedir",
		"mailmap.file", "blame.ignorerevsfile", "fsck.skiplist", "fetch.fsck.skiplist", "receive.fsck.skiplist",
	}, name) || slices.Contains([]string{
		"program", "allowedsignersfile", "revocationfile", "cookiefile", "sslcert", "sslkey", "sslcainfo", "sslcapath",
	}, key)
}

// plainText reports that settings of this name hold no program and no file of the checkout, but text with slashes.
func plainText(key string) bool {
	return slices.Contains([]string{
		"fetch", "push", "merge", "remote", "url", "pushurl", "insteadof", "pushinsteadof", "description", "name", "email",
		"pretty", "format", "xfuncname", "funcname", "wordregex",
	}, key)
}

// absolute are the places that a path may mean, seen from the folders.
func (n *namer) absolute(path string, from ...string) (all []string) {
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
			all = append(all, dir+"/"+path) // not cleaned: ".." after a link is above what it leads to
		}
	}
	return all
}

// add notes those of the paths that are in a checkout, by their own name and by the one that links lead to, and these links.
func (n *namer) add(setting string, paths ...string) {
	for _, path := range paths {
		ways := []string{path, git.Resolved(path)}
		for i, c := range path {
			if _, err := os.Readlink(path[:i]); c == '/' && err == nil {
				ways = append(ways, path[:i])
			}
		}
		for _, path := range ways {
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

// hooks looks at links that lead from the hooks folder into a checkout.
func (n *namer) hooks(dir string) {
	link := func(path string, info fs.FileMode) {
		if to, err := os.Readlink(path); info&fs.ModeSymlink != 0 && err == nil {
			n.add("a link in .git/hooks", n.absolute(to, filepath.Dir(path))...)
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
