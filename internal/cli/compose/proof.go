package compose

import (
	"fmt"
	"path/filepath"

	"github.com/ralph-pool/ralph/pool/proof"
	"github.com/ralph-pool/ralph/sandboxes"
)

// prover returns a Prover with the user's key, or nil without one. It refuses a key that a sandbox would show.
func (a *App) prover(p *Parts, provider sandboxes.Provider, mounts []sandboxes.Mount) (*proof.Prover, error) {
	if p.ProofKey == "" || p.looks {
		return nil, nil
	}
	key, err := proof.ReadKey(p.ProofKey)
	if err != nil {
		return nil, p.Wrong("proof-key", err)
	}
	p.Secrets.Add(key.Secrets()...)
	shown := append([]string{p.Top, p.State}, p.SandboxShow...)
	for _, m := range mounts {
		shown = append(shown, m.Host)
	}
	for _, folder := range shown {
		if within(p.ProofKey, folder) {
			return nil, p.Wrong("proof-key", fmt.Errorf("agents may be able to read %s; keep the key in another folder", folder))
		}
	}
	if !provider.Capabilities().Isolated() {
		a.UI.Note("proof-key: in sandbox %s an agent can use the key, and sign anything with it",
			provider.Name()) // a warning would make cron send mail after each sweep
	}
	return &proof.Prover{Repo: p.Repo, Key: key, Version: a.Build().Version}, nil
}

// within reports whether folder contains path, links followed. It errs on the side of true.
func within(path, folder string) bool {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return false // a missing folder contains nothing
	}
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
