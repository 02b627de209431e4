package gitlab

import (
	"net/http"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/tracker"
	"github.com/ralph-pool/ralph/tracker/forge/forgetest"
	"github.com/ralph-pool/ralph/tracker/gitlab/gitlabtest"
)

// GitLab also answers "not found" if ralph has no permission to award emoji. Then the command stays unmarked and the next process
// would carry it out again, so that is an error.
func TestAnswerThatCannotBeMarked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	iid := r.project.AddIssue(gitlabtest.Issue{Title: "one"})
	r.project.Comment(r.ada, iid, "/ralph explain", false)
	list, err := r.Commands(t.Context(), "ralph/")
	if err != nil || len(list) != 1 {
		t.Fatalf("commands: %v, %v", list, err)
	}
	r.server.Inject(func(c forgetest.Call) *gitlabtest.Fault {
		if c.Write() && strings.HasSuffix(c.Path, "/award_emoji") {
			return &gitlabtest.Fault{Status: http.StatusNotFound, Body: `{"message":"404 Award Emoji Not Found"}`}
		}
		return nil
	})
	if err := r.Answer(t.Context(), list[0], tracker.Answer{Text: "so it is"}); err == nil {
		t.Error("an answer whose mark GitLab refuses is taken for given")
	}
}
