package toolchain

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestOldNode(t *testing.T) {
	t.Parallel()
	for engines, old := range map[string]bool{
		`">=24"`: true, `"^24.1.0"`: true, `"24.x || 26"`: true, `"v24"`: true, `"<26"`: false, `"*"`: false, `""`: false, `">=18 <25"`: false, `"22 || 24"`: false, `7`: false,
	} {
		dir := t.TempDir()
		build := filepath.Join(dir, "Dockerfile")
		err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"engines": {"node": `+engines+`}}`), 0o600)
		if err = errors.Join(err, os.WriteFile(build, []byte("# x\nFROM docker.io/library/node:22-trixie-slim\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		if wanted, has := OldNode(dir, build); (wanted != "") != old || old && has != 22 {
			t.Errorf("%s: %q, %d", engines, wanted, has)
		}
		if wanted, _ := OldNode(dir, filepath.Join(dir, "none")); wanted != "" {
			t.Errorf("%s: %q without an image", engines, wanted)
		}
	}
}
