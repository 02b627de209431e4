package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/identity"
)

// othersShown is how many people a warning names.
const othersShown = 5

// NameOthers adds a warning where commits name people besides the run's own identity and the agents with these mail addresses:
// as author or committer, or in a trailer such as Reviewed-by. Whatever an agent commits may claim that.
func NameOthers(ctx context.Context, repo *worktree.Repo, who worktree.Identity, agents []string, base, tip string, warnings []string) ([]string, error) {
	user, err := repo.User(ctx)
	if err != nil && !errors.Is(err, worktree.ErrNoIdentity) {
		return warnings, err
	}
	own := []string{""}
	for _, i := range append([]identity.Ident{user, who.Author, who.Committer, identity.Of(nil)}, who.CoAuthors...) {
		own = append(own, i.String())
	}
	type claim struct{ role, name string }
	var found []claim
	seen := map[claim]bool{} // an agent may name any number
	add := func(role, name string) {
		if c := (claim{role, name}); !seen[c] && !slices.Contains(own, name) {
			seen[c], found = true, append(found, c)
		}
	}
	err = repo.Git().Lines(ctx, func(line []byte) {
		parts := strings.Split(string(line), "\x1f")
		if len(parts) < 2 {
			return
		}
		add("author", parts[0])
		add("committer", parts[1])
		for _, trailer := range parts[2:] {
			key, name, _ := strings.Cut(trailer, ":")
			k, name := strings.ToLower(key), strings.TrimSpace(name)
			self := slices.ContainsFunc(agents, func(mail string) bool {
				return mail != "" && strings.HasSuffix(strings.ToLower(name), "<"+mail+">")
			})
			if strings.HasSuffix(k, "-by") && k != "generated-by" && !self {
				add(key+":", name)
			}
		}
	}, "log", "--encoding=UTF-8", "--format=%an <%ae>%x1f%cn <%ce>%x1f%(trailers:only,unfold,separator=%x1f)", base+".."+tip, "--")
	if err != nil || len(found) == 0 { // most often
		return warnings, err
	}
	for _, role := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} { // the environment may name others than the settings
		if at, err := repo.Git().Out(ctx, "var", role); err == nil {
			user := at[:strings.LastIndex(at, ">")+1]
			found = slices.DeleteFunc(found, func(c claim) bool { return c.name == user })
		}
	}
	var names []string
	for _, c := range found {
		names = append(names, c.role+" "+c.name)
	}
	if len(names) == 0 {
		return warnings, nil
	}
	more := ""
	if n := len(names) - othersShown; n > 0 {
		names, more = names[:othersShown], fmt.Sprintf(" and %d more", n)
	}
	text := "the commits name others, who may know nothing of it: " + strings.Join(names, ", ") + more
	if !slices.Contains(warnings, text) {
		warnings = append(warnings, text)
	}
	return warnings, nil
}
