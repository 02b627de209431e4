package worktree

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// claimMessage is the only line of a claim commit's message. The nonce makes every claim commit unique: of two pushes
// of one commit both would be told that they have won.
type claimMessage struct {
	Holder
	Nonce string `json:"nonce"`
	// Before is the commit of the Done that the claim has replaced. It is the claim commit's parent too, so that git
	// keeps it and brings it along.
	Before string `json:"before,omitempty"`
	// Decided is there once the run has come to its end.
	Decided *Decided `json:"decided,omitempty"`
}

// claimCommit writes a claim's commit, with a nonce of its own. Its tree is empty.
func (r *Repo) claimCommit(m claimMessage) (string, error) {
	m.Nonce = rand.Text()
	message, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	return r.messageCommit(string(message), m.Before)
}

// messageCommit writes a commit that is nothing but its message and, where it has one, its parent.
func (r *Repo) messageCommit(message, parent string) (string, error) {
	tree, err := r.objects.write("tree", nil)
	if err != nil {
		return "", err
	}
	var parents []string
	if parent != "" {
		parents = []string{parent}
	}
	return r.objects.commit(tree, parents, message, r.now())
}

// decodeClaim reads a claim commit's message. What comes after its first line is ignored.
func decodeClaim(message string) (claimMessage, error) {
	line, _, _ := strings.Cut(message, "\n")
	var m claimMessage
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return claimMessage{}, fmt.Errorf("claim: %w", err)
	}
	if m.Owner == "" || m.Generation < 1 || m.Expires.IsZero() || m.Before != "" && !isObjectName(m.Before) {
		return claimMessage{}, errors.New("claim: owner, generation and expires are required")
	}
	if m.Decided != nil && m.Decided.Done.Run == "" {
		return claimMessage{}, errors.New("claim: it decides for no run")
	}
	return m, nil
}

// commitMessage cuts the headers off a commit object.
func commitMessage(object string) string {
	_, message, _ := strings.Cut(object, "\n\n")
	return message
}
