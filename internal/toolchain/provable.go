package toolchain

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/ralph-pool/ralph/internal/ecosystem"
	"github.com/ralph-pool/ralph/internal/ecosystem/match"
	"github.com/ralph-pool/ralph/internal/suite"
)

// maxLooks bounds the files that Provable looks at.
const maxLooks = 20_000

var errFound = errors.New("found")

// Provable reports that the project has tests of which each file can be run by itself, where these shell lines are its gate.
func Provable(top string, gate []string) bool {
	files := os.DirFS(top)
	has := func(name string) bool {
		info, err := fs.Stat(files, name)
		return err == nil && info.Mode().IsRegular()
	}
	looks := 0
	err := fs.WalkDir(files, ".", func(name string, e fs.DirEntry, err error) error {
		if looks++; looks > maxLooks {
			return fs.SkipAll
		}
		switch {
		case err != nil:
			return fs.SkipDir // it may not be the user's to read
		case e.IsDir():
			if name != "." && (strings.HasPrefix(e.Name(), ".") || match.Within(name+"/x", match.Foreign)) {
				return fs.SkipDir
			}
			return nil
		case !e.Type().IsRegular():
			return nil
		}
		if provable(files, name, gate, has) {
			return errFound
		}
		return nil
	})
	return errors.Is(err, errFound)
}

func provable(files fs.FS, name string, gate []string, has func(string) bool) bool {
	if role, _ := suite.RoleOf(name, nil); role != ecosystem.Test {
		return false
	}
	info, err := fs.Stat(files, name)
	if err != nil || info.Size() > 1<<20 {
		return false
	}
	text, err := fs.ReadFile(files, name)
	if err != nil || !suite.HoldsTests(name, text) {
		return false
	}
	_, ok := suite.RerunOf(name, text, gate, has)
	return ok
}
