package proof

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/ralph-pool/ralph/pool/journal"
	"github.com/ralph-pool/ralph/worktree"
)

// Prover makes proofs.
type Prover struct {
	Repo    *worktree.Repo
	Key     *Key
	Version string // version of this program
}

// Prove signs a statement about the record's tip and adds it to the tip's note, unless the run has done so. The tip is on
// top of base or of an older commit of it. With share, Prove also pushes the note to the remote. It returns a proof that
// was made but not shared together with the error.
func (p *Prover) Prove(ctx context.Context, r journal.Record, base string, share bool) (journal.Proof, error) {
	made, err := p.prove(ctx, r, base)
	if err == nil && share {
		err = p.Repo.Notes().Push(ctx, r.Tip)
	}
	if err != nil {
		err = fmt.Errorf("proof of %.12s: %w", r.Tip, err)
	}
	return made, err
}

func (p *Prover) prove(ctx context.Context, r journal.Record, base string) (journal.Proof, error) {
	notes, made := p.Repo.Notes(), journal.Proof{Tip: r.Tip, Key: p.Key.String()}
	at, err := notes.LocalHead(ctx)
	if err != nil {
		return journal.Proof{}, err
	}
	lines, err := notes.Read(ctx, at, r.Tip)
	if err != nil {
		return journal.Proof{}, err
	}
	for _, line := range lines {
		if s, _, err := open(ctx, line, []PublicKey{p.Key.Public()}); err == nil && s.Commit() == r.Tip && s.Predicate.Run == r.ID {
			return made, nil
		}
	}
	g, on := p.Repo.Git(), objects{commit: r.Tip}
	if on.tree, err = g.Output(ctx, "rev-parse", "--verify", "--end-of-options", r.Tip+"^{tree}"); err != nil {
		return journal.Proof{}, err
	}
	if on.base, err = g.Output(ctx, "merge-base", "--end-of-options", base, r.Tip); err != nil {
		return journal.Proof{}, err
	}
	s := statementOf(r, on, p.Version, time.Now(), func(name string) *Log { return digest(filepath.Join(r.Dir, name)) })
	line, err := sign(ctx, s, p.Key)
	if err != nil {
		return journal.Proof{}, err
	}
	if err := notes.Add(ctx, r.Tip, line); err != nil {
		return journal.Proof{}, err
	}
	return made, nil
}

// digest returns the digest of a log, or nil if the log does not exist.
func digest(path string) *Log {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil
	}
	return &Log{Name: filepath.Base(path), SHA256: fmt.Sprintf("%x", h.Sum(nil))}
}
