package leak

import (
	"encoding/base64"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
)

func FuzzIn(f *testing.F) {
	for _, e := range encodings(f) {
		f.Add([]byte(e.do("words")), []byte(e.do(token)))
	}
	f.Add([]byte("\x1f\x8b\x08\x04\xff\xff"), []byte("PK\x03\x04"))
	finder := New([]string{"a-known-value"})
	f.Fuzz(func(t *testing.T, before, after []byte) {
		d := decoder{finder: finder}
		d.look(before)
		if d.work > (factor+1)*len(before)+start {
			t.Fatalf("%d bytes looked at for %d", d.work, len(before))
		}
		text := string(before) + " " + token + " " + string(after)
		for _, coded := range []string{
			text, base64.StdEncoding.EncodeToString([]byte(text)), hex.EncodeToString([]byte(text)), percent(text), squeeze(t, gzipped, text),
		} {
			if len(coded) < chunk && !finder.In(coded) {
				t.Fatalf("not found in %q", coded)
			}
		}
	})
}

// Files of honest projects carry no secret: checksums, pictures, archives.
func TestHonestFiles(t *testing.T) {
	t.Parallel()
	finder := New(nil)
	for _, pattern := range []string{"../../go.sum", "../../docs/*.png", "../../tracker/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{string(content), base64.StdEncoding.EncodeToString(content), squeeze(t, gzipped, string(content))} {
				if finder.In(text) {
					t.Errorf("%s is taken for a secret", file)
				}
			}
		}
	}
}
