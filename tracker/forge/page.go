package forge

import (
	"context"
	"errors"
)

// PageSize is the longest page that forges give.
const PageSize = 100

// Pages reads a list. Read asks for one page, whose number fits its size, and says whether more entries follow. Where a page is
// too long, because of what somebody wrote there, its entries are read in smaller ones; an entry that is too long by itself is
// left out.
func Pages(ctx context.Context, read func(ctx context.Context, number, size int) (more bool, err error)) error {
	sizes, level := []int{PageSize, 20, 4, 1}, 0 // each divides those before, so that their pages begin together
	for from := 0; from < 1000*PageSize; {
		size := sizes[level]
		more, err := read(with(ctx, func(i *intent) { i.page = size }), from/size+1, size)
		if errors.Is(err, errTooLong) && size > 1 {
			level++
			continue
		}
		if err != nil || !more {
			return err
		}
		from += size
		for level > 0 && from%sizes[level-1] == 0 {
			level--
		}
	}
	return errors.New("the list has too many entries")
}
