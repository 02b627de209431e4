package scaffold

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/ralph-pool/ralph/pool/run/config"
)

// canaryDir holds the user's own tests that must fail. Each is added to a copy of the commits, at the same path.
const canaryDir = Dir + "/canary"

// Canaries reads the user's own tests that must fail. Without the folder it returns none.
func Canaries(top string) ([]config.Canary, error) {
	root, err := os.OpenRoot(filepath.Join(top, canaryDir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", canaryDir, err)
	}
	defer root.Close()
	var own []config.Canary
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !d.Type().IsRegular() {
			return fmt.Errorf("%s is not a regular file", path)
		}
		content, err := fs.ReadFile(root.FS(), path)
		own = append(own, config.Canary{Path: path, Content: content})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", canaryDir, err)
	}
	return own, nil
}
