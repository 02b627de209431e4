// Package needle finds texts in a stream of pieces.
package needle

import "strings"

// Needle looks for one text in a stream of pieces (Knuth, Morris and Pratt): each byte is looked at once, wherever the
// pieces are split, and nothing of them is kept.
type Needle struct {
	text string
	back []int // back[i]: length of the longest proper prefix of text that ends text[:i+1]
	at   int   // bytes of text matched so far
}

// New makes a needle for a text that is not empty.
func New(text string) *Needle {
	back := make([]int, len(text))
	for i, k := 1, 0; i < len(text); i++ {
		for k > 0 && text[i] != text[k] {
			k = back[k-1]
		}
		if text[i] == text[k] {
			k++
		}
		back[i] = k
	}
	return &Needle{text: text, back: back}
}

// Feed reports whether the text ends in this piece.
func (n *Needle) Feed(piece string) bool {
	for i := 0; i < len(piece); i++ {
		if n.at == 0 { // most of a stream: skip to where a match can start
			skip := strings.IndexByte(piece[i:], n.text[0])
			if skip < 0 {
				return false
			}
			i += skip
		}
		for n.at > 0 && piece[i] != n.text[n.at] {
			n.at = n.back[n.at-1]
		}
		if piece[i] == n.text[n.at] {
			n.at++
		}
		if n.at == len(n.text) {
			return true
		}
	}
	return false
}

// Reset forgets what has been read.
func (n *Needle) Reset() { n.at = 0 }

// String is the text.
func (n *Needle) String() string { return n.text }
