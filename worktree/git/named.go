package git

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Named is a file or folder of a checkout that the user's own git runs or obeys, because the configuration, or a link in
// the hooks folder, names it. Who changes it directs git.
type Named struct {
	Path    string // from the top of the checkout, with slashes
	Setting string // what names it, such as "core.hookspath"
}

// NamedFiles lists what the configuration and the hooks folder name inside a checkout of the user's: the one whose top is
// given, and those that git knows.
func (g Runner) NamedFiles(ctx context.Context, top string) ([]Named, error) {
	out, err := g.With("GIT_CONFIG_COUNT=0").Run(ctx, "", "config", "--list", "-z", "--includes", "--show-origin")
	if err != nil {
		return nil, fmt.Errorf("read git's configuration: %w", err)
	}
	var n namer
	n.home, _ = os.UserHomeDir() // without one, nothing is in it
	for _, dir := range append(g.userCheckouts(), top) {
		n.tops = append(n.tops, dir)
		if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir {
			n.tops = append(n.tops, real)
		}
	}
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		origin := strings.TrimPrefix(fields[i], "file:")
		if !filepath.IsAbs(origin) {
			origin = filepath.Join(g.dir, origin)
		}
		name, value, _ := strings.Cut(fields[i+1], "\n")
		n.setting(Setting{name, value}, filepath.Dir(origin))
	}
	n.hooks(filepath.Join(g.common, "hooks"))
	return n.found, nil
}

// LockReason begins the reason with which ralph locks its linked worktrees; it tells them from the user's.
const LockReason = "ralph run "

// userCheckouts are the tops of the user's checkouts. It reads git's records itself: git fails at one that is half made.
func (g Runner) userCheckouts() (tops []string) {
	if filepath.Base(g.common) == ".git" {
		tops = append(tops, filepath.Dir(g.common))
	}
	links, _ := filepath.Glob(filepath.Join(escapeGlob(g.common), "worktrees", "*", "gitdir")) // the pattern is valid
	for _, link := range links {
		locked, _ := ReadLinked(filepath.Join(filepath.Dir(link), "locked")) // most are not
		file, err := ReadLinked(link)
		top := filepath.Dir(strings.TrimSuffix(string(file), "\n"))
		if err == nil && filepath.IsAbs(top) && !strings.HasPrefix(string(locked), LockReason) {
			tops = append(tops, top)
		}
	}
	return tops
}

// namer collects the files that settings name.
type namer struct {
	home  string
	tops  []string // of checkouts
	found []Named
}

// setting looks at one setting; from is the folder of its file. Which settings run a program changes with git and with the
// tools that read its configuration: so every value counts as a command that is not known to be something else.
func (n *namer) setting(s Setting, from string) {
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
		ways := []string{path, resolved(path)}
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
				if !slices.ContainsFunc(n.found, func(f Named) bool { return f.Path == rel }) {
					n.found = append(n.found, Named{rel, setting})
				}
			}
		}
	}
}

// resolved follows the links in a path whose last parts need not exist.
func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	last := strings.LastIndexByte(path, '/')
	if last <= 0 {
		return path
	}
	return filepath.Join(resolved(path[:last]), path[last+1:])
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
