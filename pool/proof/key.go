package proof

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"
	"golang.org/x/crypto/ssh"

	"github.com/ralph-pool/ralph/worktree/git"
)

// maxKeyFile is the size limit of a key file, in bytes.
const maxKeyFile = 64 << 10

// Key is an ed25519 private key. It formats as its fingerprint.
type Key struct {
	private ed25519.PrivateKey
	public  PublicKey
	secrets []string
}

// ReadKey reads an ed25519 private key without a passphrase, in OpenSSH format or as PKCS #8 in PEM. The file must not be
// readable by others.
func ReadKey(path string) (*Key, error) {
	text, info, err := readFile(path, fmt.Sprintf("make a key with: ssh-keygen -t ed25519 -N '' -f %s", git.Quote(path)))
	if err != nil {
		return nil, err
	}
	if _, err := parsePublicKeys(text); err == nil {
		return nil, fmt.Errorf("%s is a public key; name the file of its private half", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("other users can read %s; close it with: chmod 600 %[1]s", path)
	}
	raw, err := ssh.ParseRawPrivateKey(text)
	if _, locked := errors.AsType[*ssh.PassphraseMissingError](err); locked {
		return nil, fmt.Errorf("%s has a passphrase, which nobody is there to type; use a key without one", path)
	}
	if err != nil {
		return nil, fmt.Errorf("%s contains no private key: %w", path, err)
	}
	k := &Key{}
	switch raw := raw.(type) {
	case ed25519.PrivateKey:
		k.private = raw
	case *ed25519.PrivateKey:
		k.private = *raw
	default:
		return nil, fmt.Errorf("%s contains no ed25519 key; make one with: ssh-keygen -t ed25519 -N '' -f FILE", path)
	}
	k.public = publicKey(k.private.Public().(ed25519.PublicKey))
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "-") {
			k.secrets = append(k.secrets, line)
		}
	}
	return k, nil
}

// Public returns the public key.
func (k *Key) Public() PublicKey { return k.public }

// Secrets returns the texts that must be redacted.
func (k *Key) Secrets() []string { return k.secrets }

// String returns the fingerprint.
func (k *Key) String() string { return k.public.Fingerprint }

// GoString returns the fingerprint, so that %#v shows no secret.
func (k *Key) GoString() string { return k.String() }

// Sign implements dsse.Signer.
func (k *Key) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(k.private, data), nil
}

// KeyID returns the fingerprint, for package dsse.
func (k *Key) KeyID() (string, error) { return k.public.KeyID() }

// PublicKey verifies signatures.
type PublicKey struct {
	Fingerprint string // as ssh-keygen -l prints it
	key         ed25519.PublicKey
}

func publicKey(key ed25519.PublicKey) PublicKey {
	fingerprint, _ := dsse.SHA256KeyID(key) // cannot fail for an ed25519 key
	return PublicKey{fingerprint, key}
}

// Verify verifies a signature, for package dsse.
func (p PublicKey) Verify(_ context.Context, data, signature []byte) error {
	if !ed25519.Verify(p.key, data, signature) {
		return errors.New("the key did not make the signature")
	}
	return nil
}

// KeyID returns the fingerprint, for package dsse.
func (p PublicKey) KeyID() (string, error) { return p.Fingerprint, nil }

// Public returns the key, for package dsse.
func (p PublicKey) Public() crypto.PublicKey { return p.key }

// ReadPublicKeys reads the ed25519 public keys of a file: lines as in OpenSSH's authorized_keys, or PKIX in PEM.
func ReadPublicKeys(path string) ([]PublicKey, error) {
	text, _, err := readFile(path, "make a key with: ssh-keygen -t ed25519 -N '' -f KEY, which writes the public half into KEY.pub")
	if err != nil {
		return nil, err
	}
	keys, err := parsePublicKeys(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return keys, nil
}

func parsePublicKeys(text []byte) (keys []PublicKey, err error) {
	if bytes.Contains(text, []byte("PRIVATE KEY-----")) {
		return nil, errors.New("it is a private key; give the public one")
	}
	add := func(key any) {
		if key, ok := key.(ed25519.PublicKey); ok {
			keys = append(keys, publicKey(key))
		} else {
			err = errors.New("a key in it is not ed25519")
		}
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			return nil, errors.New("a key in it cannot be read")
		}
		add(key)
		text = nil
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return nil, errors.New("a key in it cannot be read")
		}
		if key, ok := key.(ssh.CryptoPublicKey); ok {
			add(key.CryptoPublicKey())
		} else {
			add(nil)
		}
	}
	if err == nil && len(keys) == 0 {
		err = errors.New("it contains no key")
	}
	return keys, err
}

// readFile reads a small regular file. It checks the opened file, so that a pipe in its place cannot block it. instead is
// advice for a missing file.
func readFile(path, instead string) ([]byte, os.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("there is no file %s; %s", path, instead)
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s is not a regular file", path)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxKeyFile+1))
	if err == nil && len(text) > maxKeyFile {
		err = fmt.Errorf("%s is larger than %d KiB", path, maxKeyFile>>10)
	}
	return text, info, err
}
