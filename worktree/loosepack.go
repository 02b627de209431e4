package worktree

import (
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git's pack checksum, not a security measure
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
)

// packKinds are the object types by their number in a pack.
func packKinds() map[string]byte {
	return map[string]byte{"commit": 1, "tree": 2, "blob": 3, "tag": 4}
}

// writePack writes the found objects as a pack, the one form in which git takes many objects and believes nothing of
// them: it computes each name from the content.
func (l *looseObjects) writePack(to io.Writer) error {
	var sum hash.Hash = sha1.New() //nolint:gosec // see above
	if l.nameSz == sha256.Size {
		sum = sha256.New()
	}
	out := io.MultiWriter(to, sum)
	header := append([]byte("PACK\x00\x00\x00\x02"), binary.BigEndian.AppendUint32(nil, uint32(len(l.found)))...)
	if _, err := out.Write(header); err != nil {
		return err
	}
	z, err := zlib.NewWriterLevel(out, zlib.BestSpeed)
	if err != nil {
		return err
	}
	for _, o := range l.found {
		if err := l.writeEntry(out, z, o); err != nil {
			return fmt.Errorf("object %s: %w", short(o.name), err)
		}
	}
	_, err = to.Write(sum.Sum(nil))
	return err
}

func (l *looseObjects) writeEntry(out io.Writer, z *zlib.Writer, o looseObject) error {
	now, content, err := l.open(o.name)
	if err != nil {
		return err
	}
	defer content.Close()
	if now != o {
		return fmt.Errorf("it changed while it was read")
	}
	if _, err := out.Write(entryHeader(packKinds()[o.kind], o.size)); err != nil {
		return err
	}
	z.Reset(out)
	if _, err := io.CopyN(z, content, o.size); err != nil {
		return err
	}
	return z.Close()
}

// entryHeader is type and size of a pack's entry: 4 bits of size beside the type, then 7 in each byte.
func entryHeader(kind byte, size int64) []byte {
	first := kind<<4 | byte(size&0x0f)
	header := []byte{}
	for size >>= 4; size > 0; size >>= 7 {
		header = append(header, first|0x80)
		first = byte(size & 0x7f)
	}
	return append(header, first)
}
