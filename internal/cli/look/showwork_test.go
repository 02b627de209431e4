package look

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ralph-pool/ralph/pool/redact"
	"github.com/ralph-pool/ralph/worktree/commits"
)

// Whoever commits chooses the names of files and of authors.
func TestWorkShowsNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "a-secret-of-ours-0123456789"
	w := WorkData{
		Commits: []commits.Commit{{SHA: "0123", Subject: "it is " + secret, Author: secret}},
		Changes: &commits.Stat{Files: []commits.File{{Path: "go.mod"}, {Path: "x/" + secret}}},
	}
	w.redact(redact.New(secret))
	if all, err := json.Marshal(w); err != nil || strings.Contains(string(all), secret) || w.Changes.Files[0].Path != "go.mod" {
		t.Errorf("%s, %v", all, err)
	}
}
