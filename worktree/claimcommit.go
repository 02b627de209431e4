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
}

// claimCommit writes a claim's commit. Its tree is empty.
func (r *Repo) claimCommit(h Holder, before string) (string, error) {
	message, err := json.Marshal(claimMessage{Holder: h, Nonce: rand.Text(), Before: before})
	if err != nil {
		return "", err
	}
	return r.messageCommit(string(message), before)
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

// decodeHolder reads a claim commit's message. What comes after its first line is ignored.
func decodeHolder(message string) (Holder, error) {
	m, err := decodeClaim(message)
	return m.Holder, err
}

func decodeClaim(message string) (claimMessage, error) {
	line, _, _ := strings.Cut(message, "\n")
	var m claimMessage
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		return claimMessage{}, fmt.Errorf("claim: %w", err)
	}
	if m.Owner == "" || m.Generation < 1 || m.Expires.IsZero() || m.Before != "" && !isObjectName(m.Before) {
		return claimMessage{}, errors.New("claim: owner, generation and expires are required")
	}
	return m, nil
}

// commitMessage cuts the headers off a commit object.
func commitMessage(object string) string {
	_, message, _ := strings.Cut(object, "\n\n")
	return message
}
