package compose

import (
	"fmt"
	"path/filepath"

	"github.com/ralph-pool/ralph/pool/proof"
	"github.com/ralph-pool/ralph/sandboxes"
)

// prover makes proofs with the user's key; nil where there is none. No sandbox gets the key.
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
			return nil, p.Wrong("proof-key", fmt.Errorf("agents may get to see what is in %s; keep the key in another folder", folder))
		}
	}
	if !provider.Capabilities().Isolated() {
		a.UI.Note("proof-key: in sandbox %s an agent can use the key, and sign anything with it",
			provider.Name()) // cron would mail a warning of each sweep
	}
	return &proof.Prover{Repo: p.Repo, Key: key, Version: a.Build().Version}, nil
}

// within reports whether a file is in the folder, wherever links lead.
func within(path, folder string) bool {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return true
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return false // there is nothing in it
	}
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}
