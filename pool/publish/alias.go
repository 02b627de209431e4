package publish

import (
	"context"
	"path"
	"slices"
	"strings"
)

// aliases are other names of paths by the symbolic links of the bases. Who changes what a protected link leads to, or a path
// on its way, changes the protected file.
type aliases struct {
	ends map[string][]string // links by the path that they lead to; "." is the top
	on   map[string][]string // links by each path on their way, the last included
}

// name is a path that has changed, or another name of one; link says that it may be another file or folder than before.
type name struct {
	path string
	link bool
}

const (
	aliasLimit = 1000 // names of one file: links that lead to each other can give it any number
	hopLimit   = 40   // links on one way: the kernel follows no more
)

// aliases reads the links of the bases. Nothing is read when nothing has changed.
func (p Policy) aliases(ctx context.Context, bases, changed []string) (a aliases, err error) {
	if len(changed) == 0 || len(p.Protected) == 0 {
		return a, nil
	}
	a = aliases{ends: map[string][]string{}, on: map[string][]string{}}
	for _, base := range bases {
		links, err := p.Repo.Links(ctx, base)
		if err != nil {
			return a, err
		}
		for link := range links {
			a.add(links, link)
		}
	}
	for _, names := range []map[string][]string{a.ends, a.on} {
		for path := range names {
			slices.Sort(names[path])
			names[path] = slices.Compact(names[path]) // more than one base has it
		}
	}
	return a, nil
}

// add follows a link as the kernel does, name by name: after a link ".." is the folder that the link has led to.
func (a aliases) add(links map[string]string, link string) {
	pass := func(at string) {
		if n := len(a.on[at]); at != link && (n == 0 || a.on[at][n-1] != link) { // a link may come by twice
			a.on[at] = append(a.on[at], link)
		}
	}
	at, rest := ".", strings.Split(link, "/")
	for hops := 0; len(rest) > 0; {
		at, rest = path.Join(at, rest[0]), rest[1:]
		if at == ".." {
			return // out of the repository
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
			pass(path.Join(at, path.Join(rest...))) // where it would lead without the next links
		}
	}
	a.ends[at] = append(a.ends[at], link)
}

// protected returns a protected name that the path also has by links, or whose link leads by it; empty: there is none.
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

// names are those that a path has by one link. A name that goes through one link twice says nothing new.
func (a aliases) names(n name) (all []name) {
	for _, link := range a.on[n.path] {
		all = append(all, name{link, true})
	}
	for folder := n.path; len(a.ends) > 0 && folder != "."; {
		folder = path.Dir(folder)
		for _, link := range a.ends[folder] {
			if !strings.Contains("/"+n.path, "/"+link+"/") {
				all = append(all, name{path.Join(link, strings.TrimPrefix(n.path, folder+"/")), n.link})
			}
		}
	}
	return all
}
