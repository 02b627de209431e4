package publish

import (
	"context"
	"path"
	"slices"
	"strings"
)

// aliases maps paths to their other names through symbolic links of the bases. Whoever changes the target of a protected
// link, or a path on the way to it, changes the protected file.
type aliases struct {
	byTarget map[string][]string // links by their target path; "." is the top
	passing  map[string][]string // links by each path on the way to their target, including the target
}

// name is a changed path or another name of one. link says that the name may now stand for another file or folder.
type name struct {
	path string
	link bool
}

const (
	aliasLimit = 1000 // number of names of one file: links to each other can give it any number
	hopLimit   = 40   // number of links on one way, as in the kernel
)

// aliases reads the links of the bases. It reads nothing if nothing has changed.
func (p Policy) aliases(ctx context.Context, bases, changed []string) (a aliases, err error) {
	if len(changed) == 0 || len(p.Protected) == 0 {
		return a, nil
	}
	a = aliases{byTarget: map[string][]string{}, passing: map[string][]string{}}
	for _, base := range bases {
		links, err := p.Repo.Links(ctx, base)
		if err != nil {
			return a, err
		}
		for link := range links {
			a.add(links, link)
		}
	}
	for _, names := range []map[string][]string{a.byTarget, a.passing} {
		for path := range names {
			slices.Sort(names[path])
			names[path] = slices.Compact(names[path]) // several bases may have the same link
		}
	}
	return a, nil
}

// add follows a link as the kernel does, element by element: after a link, ".." is the parent of the link's target.
func (a aliases) add(links map[string]string, link string) {
	pass := func(at string) {
		if n := len(a.passing[at]); at != link && (n == 0 || a.passing[at][n-1] != link) { // the way may pass a path twice
			a.passing[at] = append(a.passing[at], link)
		}
	}
	at, rest := ".", strings.Split(link, "/")
	for hops := 0; len(rest) > 0; {
		at, rest = path.Join(at, rest[0]), rest[1:]
		if at == ".." {
			return // outside of the repository
		}
		pass(at)
		target, ok := links[at]
		if !ok {
			continue
		}
		if hops++; hops > hopLimit {
			return
		}
		if at = path.Dir(at); path.IsAbs(target) {
			at = "."
		}
		rest = append(strings.Split(target, "/"), rest...)
		if !slices.Contains(rest, "..") {
			pass(path.Join(at, path.Join(rest...))) // the target if the remaining links were not there
		}
	}
	a.byTarget[at] = append(a.byTarget[at], link)
}

// protected returns a protected name that the path has through links, or to whose target the path is on the way; "" if
// there is none.
func (a aliases) protected(g *guard, changed name) string {
	seen := map[name]bool{changed: true}
	for todo := a.names(changed); len(todo) > 0 && len(seen) < aliasLimit; todo = todo[1:] {
		n := todo[0]
		if seen[n] {
			continue
		}
		if g.protects(n.path) != "" || n.link && g.protectsBelow(n.path) != "" {
			return n.path
		}
		seen[n] = true
		todo = append(todo, a.names(n)...)
	}
	return ""
}

// names returns the names that a path has through one link. It skips names that pass through the same link twice.
func (a aliases) names(n name) (all []name) {
	for _, link := range a.passing[n.path] {
		all = append(all, name{link, true})
	}
	for folder := n.path; len(a.byTarget) > 0 && folder != "."; {
		folder = path.Dir(folder)
		for _, link := range a.byTarget[folder] {
			if !strings.Contains("/"+n.path, "/"+link+"/") {
				all = append(all, name{path.Join(link, strings.TrimPrefix(n.path, folder+"/")), n.link})
			}
		}
	}
	return all
}
