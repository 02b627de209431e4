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

func TestShapes(t *testing.T) {
	t.Parallel()
	finder := New(nil)
	x := func(n int) string { return string([]byte(randomText)[:n]) }
	for _, text := range []string{
		"AKIA" + "ABCDEFGH12345678", "ghs_" + x(36), "github_pat_" + x(50), "glpat-" + x(20), "gldt-" + x(20), "glft-" + x(20), "glrt-" + x(20), "glptt-" + x(40),
		"sk-ant-api03-" + x(60), "sk-proj-" + x(60), "xoxb-1234567890-" + x(24), "xapp-1-A0123456789-1234567890-" + x(40),
		"https://hooks.slack.com/services/" + "T01234567/B01234567/" + x(24), "sk_" + "live_" + x(24), "whsec_" + x(32), "AIza" + x(35), "GOCSPX-" + x(28),
		"npm_" + x(36), "pypi-AgEIcHlwaS5vcmc" + x(60), "hf_" + x(34), "dckr_pat_" + x(27), "SG." + x(22) + "." + x(43),
		"AccountKey=" + x(60) + x(26) + "==;", "abc8Q~" + x(34), "AGE-SECRET-KEY-1" + "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KHCE",
		"-----BEGIN " + "PRIVATE KEY-----", "-----BEGIN " + "OPENSSH PRIVATE KEY-----", "-----BEGIN " + "PGP PRIVATE KEY BLOCK-----", "---- BEGIN " + "SSH2 ENCRYPTED PRIVATE KEY ----",
		"PuTTY-User-Key-File-3: ssh-ed25519", `{"kty":"EC","d":"` + x(43) + `"}`,
	} {
		if !finder.In("x = '" + text + "'\n") {
			t.Errorf("%s: not found", text)
		}
		if !finder.In(base64.StdEncoding.EncodeToString([]byte("{" + text + "}"))) {
			t.Errorf("%s: not found in base64", text)
		}
	}
	for _, text := range []string{
		"AKIA and more", "task-" + x(50), "ghp_short", "-----BEGIN CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----", `<path d="M0 0"/>`, `"d":"` + x(20) + `"`,
		"risk-free", "hf_model_name_that_is_quite_long_for_a_name", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0." + x(43), "sha512-" + x(60) + x(26) + "==",
	} {
		if finder.In(text) {
			t.Errorf("%s: found", text)
		}
	}
}

const randomText = "k3Jf9QpZx7Lm2Vb8Nc4Rt6Yw1Hd5Sg0AeUoIiPqTzXvCnBmKlJhGfDsaWqErTyUi"
