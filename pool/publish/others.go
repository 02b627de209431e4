package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ralph-pool/ralph/worktree"
	"github.com/ralph-pool/ralph/worktree/identity"
	"github.com/ralph-pool/ralph/worktree/span"
)

// othersShown is the number of people that a warning names.
const othersShown = 5

// OtherPeopleWarning returns a warning about commits that name other people than the run's own identity and the agents with these mail
// addresses: as author or committer, or in a trailer such as Reviewed-by. An agent's commits may claim anything.
func OtherPeopleWarning(ctx context.Context, repo *worktree.Repo, who worktree.Identity, agents []string, base, tip string) (warning string, err error) {
	user, err := repo.User(ctx)
	if err != nil && !errors.Is(err, worktree.ErrNoIdentity) {
		return "", err
	}
	own := []string{""}
	for _, i := range append([]identity.Ident{user, who.Author, who.Committer, identity.UserOrRalph(nil)}, who.CoAuthors...) {
		own = append(own, i.String())
	}
	found, err := repo.Spans().People(ctx, base, tip)
	found = slices.DeleteFunc(slices.Clone(found), func(p span.Person) bool {
		self := slices.ContainsFunc(agents, func(mail string) bool {
			return mail != "" && strings.HasSuffix(strings.ToLower(p.Name), "<"+mail+">")
		})
		return slices.Contains(own, p.Name) || strings.HasSuffix(p.Role, ":") && (self || strings.EqualFold(p.Role, "generated-by:"))
	})
	if err != nil || len(found) == 0 { // usual case
		return "", err
	}
	for _, role := range []string{"GIT_AUTHOR_IDENT", "GIT_COMMITTER_IDENT"} { // the environment may name another user than the settings
		if at, err := repo.Git().Output(ctx, "var", role); err == nil {
			user := at[:strings.LastIndex(at, ">")+1]
			found = slices.DeleteFunc(found, func(p span.Person) bool { return p.Name == user })
		}
	}
	var names []string
	for _, p := range found {
		names = append(names, p.Role+" "+p.Name)
	}
	if len(names) == 0 {
		return "", nil
	}
	more := ""
	if n := len(names) - othersShown; n > 0 {
		names, more = names[:othersShown], fmt.Sprintf(" and %d more", n)
	}
	return "the commits name other people, who may not know it: " + strings.Join(names, ", ") + more, nil
}
