package worktree

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Done says that an issue was worked to its end. It takes the place of the claim on the claim's own ref, so that one
// compare-and-swap tells the next claimant both that nobody holds the issue and what became of it: a backlog that is
// not shared, such as files in another clone, does not show it.
type Done struct {
	Run        string    `json:"run"`
	Host       string    `json:"host"` // as people know it
	Outcome    string    `json:"outcome"`
	Hash       string    `json:"hash"` // of the text that was worked
	Tip        string    `json:"tip"`
	At         time.Time `json:"at"`
	Generation int       `json:"generation"` // the claim's; filled in by Finish
}

type doneMessage struct {
	Done  Done   `json:"done"`
	Nonce string `json:"nonce"`
}

// doneCommit writes the record's commit.
func (r *Repo) doneCommit(d Done) (string, error) {
	message, err := json.Marshal(doneMessage{Done: d, Nonce: rand.Text()})
	if err != nil {
		return "", err
	}
	return r.messageCommit(string(message), "")
}

// doneAt reads the record that a claim has replaced. One that cannot be read any more is none.
func (r *Repo) doneAt(ctx context.Context, commit string) (before string, d Done, err error) {
	if commit == "" {
		return "", Done{}, nil
	}
	messages, err := r.git.readMessages(ctx, []string{commit})
	if err != nil {
		return "", Done{}, err
	}
	if d, ok := decodeDone(messages[commit]); ok {
		return commit, d, nil
	}
	return "", Done{}, nil
}

// decodeDone reads a commit's message; ok is false for one that is no record of this kind.
func decodeDone(message string) (d Done, ok bool) {
	line, _, _ := strings.Cut(message, "\n")
	var m doneMessage
	if err := json.Unmarshal([]byte(line), &m); err != nil || m.Done.Run == "" || m.Done.Generation < 1 {
		return Done{}, false
	}
	return m.Done, true
}

// Done is the record that the claim was taken over from, if there was one. Release puts it back.
func (c *Claim) Done() (Done, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done, c.before != ""
}

// Finish gives the claim up and leaves the record in its place. Of a released claim it does nothing; of a lost one it
// fails with ErrLost.
func (c *Claim) Finish(ctx context.Context, d Done) error {
	d.Generation = c.Holder().Generation
	commit, err := c.repo.doneCommit(d)
	if err != nil {
		return fmt.Errorf("finish claim %s: %w", c.key, err)
	}
	if err := c.leave(ctx, commit); err != nil {
		return fmt.Errorf("finish claim %s: %w", c.key, err)
	}
	return nil
}

// Release gives the claim up. The record of an earlier end is put back; a decision that was not finished stays, for
// whoever takes the claim next. Releasing a lost or released claim is not an error.
func (c *Claim) Release(ctx context.Context) error {
	m := c.message(c.Holder())
	instead := m.Before
	if m.Decided != nil {
		m.Expires = time.Unix(0, 0).UTC()
		var err error
		if instead, err = c.repo.claimCommit(m); err != nil {
			return fmt.Errorf("release claim %s: %w", c.key, err)
		}
	}
	if err := c.leave(ctx, instead); err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("release claim %s: %w", c.key, err)
	}
	return nil
}

// Leave gives the claim up for its run to be taken up again, by a Claim with the same Run; for all others it holds for
// the given life. Leaving a lost or released claim is not an error. A claim that says what its run came to is released
// instead: anybody may do what is left.
func (c *Claim) Leave(ctx context.Context, run string, life time.Duration) error {
	if _, decided := c.Decided(); decided {
		return c.Release(ctx)
	}
	m := c.message(c.Holder())
	m.Run, m.PID, m.Started, m.Expires = run, 0, "", c.repo.now().Add(life).UTC().Round(0)
	commit, err := c.repo.claimCommit(m)
	if err == nil {
		err = c.leave(ctx, commit)
	}
	if err != nil && !errors.Is(err, ErrLost) {
		return fmt.Errorf("leave claim %s: %w", c.key, err)
	}
	return nil
}

// leave swaps the claim for what is to stand in its place; empty for nothing.
func (c *Claim) leave(ctx context.Context, commit string) error {
	c.op.Lock()
	defer c.op.Unlock()
	for range claimTries {
		c.mu.Lock()
		at, released := c.at, c.released
		c.mu.Unlock()
		if released {
			return nil
		}
		err := c.repo.claims.swap(ctx, c.key, at, commit)
		if errors.Is(err, errSwap) {
			if err = c.find(ctx); err == nil {
				continue
			}
		}
		if err != nil && !errors.Is(err, ErrLost) {
			return err
		}
		c.mu.Lock()
		c.released = true
		c.mu.Unlock()
		return err
	}
	return errSwap
}
