package pool

import (
	"context"
	"strings"
)

// What is protected can be a symbolic link, or lie behind one: who changes the file that it leads to changes it as well.

// aliases are the links that people have made, by the path that they lead to.
type aliases map[string][]string

// aliasDepth is how many links, one leading to the next, are followed.
const aliasDepth = 5

// aliases reads the links of the bases; none are needed where nothing has changed.
func (p *Pool) aliases(ctx context.Context, bases, changed []string) (aliases, error) {
	if len(changed) == 0 || len(p.cfg.Protected) == 0 {
		return nil, nil
	}
	to := aliases{}
	for _, base := range bases {
		links, err := p.cfg.Repo.Links(ctx, base)
		if err != nil {
			return nil, err
		}
		for link, target := range links {
			to[target] = append(to[target], link)
		}
	}
	return to, nil
}

// protected returns a protected name that the file also has by links; empty when there is none.
func (a aliases) protected(p *Pool, file string, depth int) string {
	if depth == 0 || len(a) == 0 {
		return ""
	}
	for folder, rest := file, ""; folder != "."; {
		for _, link := range a[folder] {
			if p.protects(link+rest) != "" {
				return link + rest
			}
			if name := a.protected(p, link+rest, depth-1); name != "" {
				return name
			}
		}
		at := strings.LastIndexByte(folder, '/')
		if at < 0 {
			break
		}
		folder, rest = folder[:at], folder[at:]+rest
	}
	return ""
}
