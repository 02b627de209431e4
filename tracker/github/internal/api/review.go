package api

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ralph-pool/ralph/tracker/forge"
	"github.com/ralph-pool/ralph/tracker/forge/transport"
)

const (
	actorFields  = `{__typename login ...on User{databaseId} ...on Bot{databaseId} ...on Mannequin{databaseId}}`
	threadsQuery = `query($owner:String!,$name:String!,$number:Int!,$last:Int!,$before:String)` +
		`{repository(owner:$owner,name:$name){pullRequest(number:$number){` +
		`reviewThreads(last:$last,before:$before){pageInfo{hasPreviousPage startCursor} ` +
		`nodes{id isResolved path line comments(last:$last){nodes{body createdAt author` + actorFields + `}}}}}}}`
	replyMutation = `mutation($id:ID!,$body:String!){addPullRequestReviewThreadReply(input:{pullRequestReviewThreadId:$id,body:$body})` +
		`{comment{id}}}`
	reactionsQuery = `query($ids:[ID!]!){nodes(ids:$ids){__typename ...on Reactable{reactionGroups{content viewerHasReacted}}}}`
	reactMutation  = `mutation($id:ID!,$content:ReactionContent!){addReaction(input:{subjectId:$id,content:$content}){reaction{content}}}`
)

// Actor is an account in GraphQL answers; nil stands for a deleted account.
type Actor struct {
	Typename   string `json:"__typename"`
	Login      string `json:"login"`
	DatabaseID int64  `json:"databaseId"`
}

// Account converts the actor.
func (a *Actor) Account() forge.Account {
	if a == nil {
		return forge.Account{Name: "ghost"} // GitHub's name for a deleted account
	}
	return forge.Account{ID: a.DatabaseID, Name: a.Login, Bot: a.Typename != "User"}
}

// reactionGroup is the reactions of one kind.
type reactionGroup struct {
	Content string `json:"content"`
	Mine    *bool  `json:"viewerHasReacted"`
}

// reactionsTo is the answer to reactionsQuery, in the order of the IDs, with null for deleted comments.
type reactionsTo struct {
	Nodes []*struct {
		Groups []reactionGroup `json:"reactionGroups"`
	} `json:"nodes"`
}

// Marked implements forge.Calls, for comments and reviews.
func (g Graph) Marked(ctx context.Context, ids []string) (map[string]bool, error) {
	marked := map[string]bool{}
	unclear := func(r reactionGroup) bool { return r.Content == "" || r.Mine == nil }
	isMark := func(r reactionGroup) bool {
		return *r.Mine && (r.Content == content(forge.ReactionTakenUp) || r.Content == content(forge.ReactionRefused))
	}
	for some := range slices.Chunk(ids, transport.PageSize) {
		complete := func(r *reactionsTo) bool {
			for _, n := range r.Nodes {
				if n != nil && (n.Groups == nil || slices.ContainsFunc(n.Groups, unclear)) {
					return false
				}
			}
			return len(r.Nodes) == len(some)
		}
		data, err := Query(transport.WithReadOnly(ctx), g, reactionsQuery, map[string]any{"ids": some}, complete)
		if err != nil {
			return nil, err
		}
		for i, n := range data.Nodes {
			marked[some[i]] = n == nil || slices.ContainsFunc(n.Groups, isMark)
		}
	}
	return marked, nil
}

// content returns GraphQL's spelling of a reaction.
func content(r forge.Reaction) string { return strings.ToUpper(string(r)) }

// React adds a reaction to a comment or a review. It does nothing if that was deleted. It is idempotent.
func (g Graph) React(ctx context.Context, id string, r forge.Reaction) error {
	err := g.mutate(transport.WithIdempotent(ctx), reactMutation, map[string]any{"id": id, "content": content(r)})
	if transport.Missing(err) {
		return nil
	}
	return err
}

// ReplyToThread adds a comment to a review thread.
func (g Graph) ReplyToThread(ctx context.Context, _ int, id, body string) error {
	return g.mutate(ctx, replyMutation, map[string]any{"id": id, "body": body})
}

// reviewThreads is the answer to threadsQuery.
type reviewThreads struct {
	Repository *struct {
		Pull *struct {
			Threads struct {
				Page struct {
					Older *bool  `json:"hasPreviousPage"`
					Start string `json:"startCursor"`
				} `json:"pageInfo"`
				Nodes []struct {
					ID       string `json:"id"`
					Resolved *bool  `json:"isResolved"`
					Path     string `json:"path"`
					Line     int    `json:"line"`
					Comments struct {
						Nodes []struct {
							Body      string    `json:"body"`
							CreatedAt time.Time `json:"createdAt"`
							Author    *Actor    `json:"author"`
						} `json:"nodes"`
					} `json:"comments"`
				} `json:"nodes"`
			} `json:"reviewThreads"`
		} `json:"pullRequest"`
	} `json:"repository"`
}

func completeThreads(r *reviewThreads) bool {
	if r.Repository == nil || r.Repository.Pull == nil || r.Repository.Pull.Threads.Nodes == nil {
		return false
	}
	if p := r.Repository.Pull.Threads.Page; p.Older == nil || *p.Older && p.Start == "" {
		return false
	}
	for _, n := range r.Repository.Pull.Threads.Nodes {
		if n.ID == "" || n.Resolved == nil || n.Comments.Nodes == nil {
			return false
		}
	}
	return true
}

// Threads returns the unresolved ones among the newest 100 review threads of a pull request, with their newest comments.
func (g Graph) Threads(ctx context.Context, number int) (out []forge.Thread, err error) {
	var before *string
	err = transport.Pages(transport.WithReadOnly(ctx), func(ctx context.Context, page, size int) (more bool, err error) {
		variables := map[string]any{"owner": g.Owner, "name": g.Name, "number": number, "last": size, "before": before}
		data, err := Query(ctx, g, threadsQuery, variables, completeThreads)
		if err != nil {
			return false, err
		}
		list := &data.Repository.Pull.Threads
		before = &list.Page.Start
		var some []forge.Thread
		for _, n := range list.Nodes {
			if *n.Resolved {
				continue
			}
			t := forge.Thread{ID: n.ID, Where: fmt.Sprintf("%s:%d", n.Path, n.Line)}
			for _, c := range n.Comments.Nodes {
				t.Remarks = append(t.Remarks, forge.Remark{By: c.Author.Account(), Body: c.Body, At: c.CreatedAt})
			}
			some = append(some, t)
		}
		out = append(some, out...) // the pages go back in time
		return *list.Page.Older && page*size < transport.PageSize, nil
	})
	return out, err
}
