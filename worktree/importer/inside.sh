# Runs in the sandbox with the agent's rights, after the agent's processes have ended. It prints what the host imports: some
# lines, then one pack. The host trusts none of it.
#
# Arguments: what to send (all, branch, commits or files), lines with the ids of objects that the host refuses, the private
# repository, the branch, the last imported commit, the maximum size of a file in bytes, the maximum number of new files, "yes" for
# a sparse checkout, the maximum depth of folders, the number of object folders, these folders, and the commits that the host has.
#
# The agent may have tampered with its repository. So git works in a new directory without the agent's configuration, hooks
# and grafts. It gets only the agent's refs and objects, and copies of the index and of the files for excludes, attributes
# and sparse checkouts.
set -u
umask 077
# If one of them were missing, commits would be mistaken for uncommitted changes.
for program in cat chmod cp cut find git grep head ln mkdir mktemp mv rm sed tail tr wc xargs; do
	command -v "$program" >/dev/null || {
		echo "the sandbox lacks the program $program" >&2
		exit 1
	}
done
what=$1 refused=$2 private=$3 branch=$4 last=$5 limit=$6 most=$7 sparse=$8 depth=$9
shift 9
given=$1
shift
[ -d "$private" ] || private=$PWD/.git
closed() { [ -d "$private" ] && { [ ! -r "$private" ] || [ ! -x "$private" ]; }; }
if closed && { ! chmod u+rwx "$private" || closed; }; then # it would look like a repository without commits
	echo "the repository in the sandbox cannot be read" >&2
	exit 1
fi
for old in "$private"/import.*; do
	if [ -e "$old" ] || [ -L "$old" ]; then rm -rf "$old"; fi
done
# Starting a process takes longer than the script's own work, so the script starts few.
folders() {
	mkdir "$temp" "$temp/lists" "$temp/store" "$temp/store/info" \
		"$temp/git" "$temp/git/info" "$temp/git/objects" "$temp/git/objects/info" "$temp/git/objects/pack"
}
temp=$private/import.$$
if ! folders; then
	rm -rf "$temp"
	parent=$(mktemp -d) || exit 1
	temp=$parent/import
	folders
fi
trap 'rm -rf "${parent:-$temp}"' EXIT
export GIT_DIR="$temp/git" GIT_WORK_TREE="$PWD" GIT_INDEX_FILE="$temp/git/info/index"
# RALPH_CHANGES contains everything that git did not create, under the same paths.
changes=${RALPH_CHANGES:-.}
printf 'ref: refs/heads/%s\n' "$branch" >"$GIT_DIR/HEAD"
: >"$temp/store/info/alternates"
while [ "$given" -gt 0 ]; do
	printf '%s\n' "$1" >>"$temp/store/info/alternates"
	printf '%s\n' "$1" >>"$GIT_DIR/objects/info/alternates"
	[ -f "$1/info/ralph-shallow" ] && cp "$1/info/ralph-shallow" "$GIT_DIR/shallow"
	shift
	given=$((given - 1))
done
if [ "${#last}" = 64 ]; then
	printf '[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n' >"$GIT_DIR/config"
fi
note() { printf 'note %s\n' "$2" >>"$temp/$1"; }
: >"$temp/notes"
: >"$temp/missed"

# Locks of a git that was killed with the agent would make every later git fail.
for file in index HEAD config; do
	if [ -e "$private/$file.lock" ] || [ -L "$private/$file.lock" ]; then rm -f "$private/$file.lock" 2>/dev/null; fi
done

# In the agent's repository: pipes, on which git would block if it read them as files, further locks, and files and folders
# without permissions. Among the files: pipes, oversized files, and nested repositories. The host refuses commits with folders
# that are too deep. Such folders have long paths, and only if there are long paths does find search for them.
long=?
while [ "${#long}" -lt "$depth" ]; do long=$long$long; done
search() {
	find "$private" . -maxdepth "$depth" -path '/*' \( -type p -o -type f -path '*/refs/*.lock' \) -exec rm -f {} + -o \
		-path '/*' -type d ! -perm -700 -exec chmod u+rwx {} \; -o \
		-path '/*' -type f ! -perm -400 -exec chmod u+r {} + -o \
		-path '/*' -o -path ./.git -prune -o \
		-type p \( -iname .git -o -iname .gitignore -o -iname .gitattributes -o -iname .gitmodules \) \
		-exec sh -c 'cd "$GIT_WORK_TREE" && rm -f "$@"' sh {} + -o \
		-type f \( -iname .gitignore -o -iname .gitattributes -o -iname .gitmodules \) -size +16384k \
		-exec sh -c 'cd "$GIT_WORK_TREE" && for f; do mv "$f" "$f.too-big-for-git"; printf "%s\n" "$f.too-big-for-git" >>"$0/big"; done' "$temp/lists" {} + -o \
		-name .git -exec sh -c 'printf "%s\n" "$@" >>"$0/nested"' "$temp/lists" {} + -prune -o \
		-type f -size "+${limit}c" -exec sh -c 'printf "%s\n" "$@" >>"$0/big"' "$temp/lists" {} + -o \
		-type d -path "$long*" -exec sh -c ': >"$0/long"' "$temp/lists" {} +
	[ ! -e "$temp/lists/long" ] || find . -mindepth "$((depth - 1))" -maxdepth "$((depth - 1))" -type d >"$temp/lists/deep"
}
if ! (cd "$changes" 2>/dev/null && { search || :; }); then search; fi

printf '%s\n' "$private/objects" >>"$GIT_DIR/objects/info/alternates"
# link gives git access to the agent's refs.
link() {
	set --
	[ ! -d "$private/refs" ] || set -- "$private/refs"
	[ ! -f "$private/packed-refs" ] || set -- "$@" "$private/packed-refs"
	[ $# = 0 ] || ln -s "$@" "$GIT_DIR"
	[ -d "$GIT_DIR/refs" ] || mkdir "$GIT_DIR/refs"
}
link
# copy copies those of the repository's files that exist.
copy() {
	for file; do
		if [ -f "$private/$file" ]; then set -- "$@" "$private/$file"; fi
		shift
	done
	[ $# = 0 ] || cp -p "$@" "$GIT_DIR/info"
}
copy index info/exclude info/attributes info/sparse-checkout
if [ "$sparse" != yes ] && git ls-files -v | grep -q '^[a-zS]'; then
	rm -f "$GIT_INDEX_FILE" # entries that hide changes
fi

escaped() { sed 's/[][*?!#\\ ]/\\&/g; s/^\.//' >>"$GIT_DIR/info/exclude"; }
exclude() { printf '%s\n' "$1" | escaped; }
if [ -s "$temp/lists/deep" ]; then
	escaped <"$temp/lists/deep"
	note notes "not saved, because more than $depth folders are inside each other: $(head -n 1 "$temp/lists/deep" | cut -c 1-200)"
fi
if [ -f "$temp/lists/big" ]; then
	while IFS= read -r path; do
		exclude "$path"
		note notes "not saved, because it is too big: $path"
	done <"$temp/lists/big"
fi
: >"$temp/inner"
: >"$temp/modules"
if [ -f "$temp/lists/nested" ]; then
	named=
	[ -f .gitmodules ] && named=$(git config -f .gitmodules --get-regexp '^submodule\..*\.path$' | sed 's/^[^ ]* //')
	while IFS= read -r path; do
		find "$path" -maxdepth "$depth" -type p -exec rm -f {} +
		path=${path%/.git}
		if printf '%s\n' "$named" | grep -Fqx -- "${path#./}"; then
			printf '%s\n' "$path" >>"$temp/modules"
			continue
		fi
		git check-ignore -q -- "$path" && continue
		printf '%s\n' "$path" >>"$temp/inner"
		exclude "$path/"
	done <"$temp/lists/nested"
fi

# some outputs the first names of a list of new files: each new file costs time in every import.
some() {
	tr '\0\n' '\n\0' >"$temp/names"
	count=$(wc -l <"$temp/names")
	if [ "$count" -gt "$most" ]; then
		note missed "$((count - most)) of $((count)) new files, which are too many: $(sed -n "$((most + 1))p" "$temp/names") and others"
	fi
	head -n "$most" "$temp/names" | tr '\0\n' '\n\0'
}

# each adds the files of a list to the index, and removes missing ones. Files that cannot be added do not stop the others.
each() {
	xargs -0 -n 100 sh -c '
		git update-index --add --remove --replace -- "$@" || for path; do
			git update-index --add --remove --replace -- "$path" || printf "note not saved: %s\n" "$path" >>"$0/missed"
		done' "$temp" 2>/dev/null
}

# snapshot prints the tree of the current files.
snapshot() {
	[ "$what" = commits ] && return
	: >"$temp/missed"
	# To find changes in these, git would use the configuration that it finds there.
	while IFS= read -r path; do git update-index --force-remove -- "$path"; done <"$temp/inner"
	while IFS= read -r path; do git update-index --assume-unchanged -- "$path" 2>/dev/null; done <"$temp/modules"
	which=-A
	git ls-files -z -o --exclude-standard >"$temp/untracked" 2>"$temp/closed" && [ ! -s "$temp/untracked" ] && which=-u
	: >"$temp/new"
	if [ -s "$temp/untracked" ]; then some <"$temp/untracked" >"$temp/new" || return 1; fi
	[ ! -s "$temp/closed" ] || note missed "not saved, a folder that cannot be read: $(sed -n "1s/^warning: [^']*'\\(.*\\)'.*/\\1/p" "$temp/closed")"
	[ ! -s "$temp/missed" ] || which=-u
	why=$(git add $which --ignore-errors 2>&1 >/dev/null)
	case $? in
	0) ;;
	1)
		note missed "$(printf '%s\n' "$why" | grep -m 1 -E '^(error|fatal):')"
		full
		;;
	*) # one file makes git fail for all, for example because its filter fails
		full && return 1
		git ls-files -z -m -d | each
		which=-u
		;;
	esac
	[ $which = -A ] || [ ! -s "$temp/new" ] || git update-index --add --remove --replace -z --stdin <"$temp/new" 2>/dev/null || each <"$temp/new"
	while IFS= read -r path; do
		# git stores no files of a nested repository, only the id of its commit.
		find "$path" -maxdepth "$depth" -name .git -prune -o \( -type f -o -type l \) ! -size "+${limit}c" -print0 | some |
			git update-index --add --replace -z --stdin || note missed "not saved, the repository inside the repository: $path"
	done <"$temp/inner"
	if [ -n "$refused" ]; then
		git ls-files -s -z | tr '\0' '\n' | grep -F "$refused" | cut -f 2- | while IFS= read -r path; do
			note missed "the host refuses its content: $path"
			was=$(git ls-tree "$commit" -- "$path")
			git update-index --force-remove -- "$path"
			[ -z "$was" ] || printf '%s\n' "$was" | git update-index --index-info
		done
	fi
	git write-tree 2>/dev/null && return
	why=$(git write-tree 2>&1 >/dev/null)
	full
	return 1
}

# refs lists branches, tags and stashes, with their types if all of their objects exist.
refs() {
	set -- refs/heads refs/tags refs/stash
	git for-each-ref --format='%(objectname) %(objecttype)' "$@" >"$temp/named" || git for-each-ref --format='%(objectname)' "$@" >"$temp/named"
}

# others prints the newest commits of branches, tags and stashes that are neither in $1 nor in the known history.
others() {
	[ "$what" = all ] || return
	[ "$pass" = first ] && [ -f "$temp/named" ] || refs
	named=
	while [ -z "$named" ] && read -r commit kind; do
		case " $1 $have " in *" $commit "*) ;; *) named=$commit ;; esac
	done <"$temp/named"
	[ -n "$named" ] || [ -f "$private/logs/refs/stash" ] || return
	{
		cat "$temp/named"
		[ -f "$private/logs/refs/stash" ] && cut -d ' ' -f 2 "$private/logs/refs/stash"
	} | sed 's/ .*//; s/$/^{commit}/' | git cat-file --batch-check='%(objectname) %(objecttype)' | sed -n 's/ commit$//p' >"$temp/refs"
	for commit in "$1" $have; do printf '^%s\n' "$commit"; done >>"$temp/refs"
	git for-each-ref --format='^%(objectname)' refs/remotes >>"$temp/refs"
	git rev-list --children --stdin <"$temp/refs" >"$temp/heads" || note missed "not all commits outside of the branch can be read"
	grep -v ' ' "$temp/heads" >"$temp/ends"
	count=$(wc -l <"$temp/ends")
	[ "$count" -le 20 ] || note missed "$((count - 20)) of $((count)) branches, tags and stashes, which are too many"
	head -n 20 "$temp/ends"
}

# send outputs everything for the commit $1 and the tree $2 of the files, and ends the script.
send() {
	have=$known
	[ "$pass" = first ] || have=$(echo $(printf '%s\n' $known | git cat-file --batch-check='%(objectname) %(objecttype)' | sed -n 's/ commit$//p'))
	new=$1
	case " $have " in *" $1 "*) new= ;; esac
	beside=$(others "$1")
	more=
	[ -z "$beside" ] || more=$(printf '%s\n' $beside | GIT_OBJECT_DIRECTORY="$temp/store" git cat-file --batch-check='%(objectname) %(objecttype)' | sed -n 's/ missing$//p')
	while [ -n "$new$2$more" ]; do
		why=$({
			printf '%s\n' $new $2 $more
			for commit in $have; do printf '^%s\n' "$commit"; done
		} | git pack-objects --revs --stdout --quiet --window=0 --depth=0 --no-reuse-delta --threads=1 2>&1 >"$temp/pack") && break
		rm -f "$temp/pack"
		[ -n "$more" ] || return 1
		note missed "not all commits outside of the branch can be read"
		beside= more=
	done
	printf 'ralph 1\ntip %s\n' "$1"
	if [ -n "$lost" ]; then
		printf 'lost %s\n' "$lost"
		[ -z "$why" ] || printf 'note %s\n' "$(printf '%s\n' "$why" | tail -n 1)"
	fi
	[ -z "$2" ] || printf 'tree %s\n' "$2"
	[ -z "$beside" ] || printf 'other %s\n' $beside
	[ ! -s "$temp/notes" ] && [ ! -s "$temp/missed" ] || cat "$temp/notes" "$temp/missed" | head -n 50 | cut -c 1-1000
	if [ -z "$new$2$more" ]; then
		echo none
	else
		echo pack
		cat "$temp/pack"
	fi
	[ -n "$lost" ] || [ "$what" = files ] || attach "$1"
	exit 0
}

# attach makes HEAD point to the branch again, unless a rebase, merge or similar is in progress.
attach() {
	[ "$head" = "refs/heads/$branch" ] && [ -z "$moved" ] && return
	for name in rebase-merge rebase-apply MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD BISECT_LOG sequencer; do
		[ -e "$private/$name" ] && return
	done
	[ -L "$private/refs" ] && return
	ref=$private/refs/heads/$branch
	rm -rf "$ref" "$private/HEAD"
	mkdir -p "${ref%/*}" && printf '%s\n' "$1" >"$ref" && printf 'ref: refs/heads/%s\n' "$branch" >"$private/HEAD"
}

# full reports whether git has failed because of a full disk. Then retries are useless, but the commits alone may still fit.
full() {
	[ -e "$temp/full" ] && return
	case $why in
	*"No space left on device"* | *"Out of diskspace"* | *"quota exceeded"*) : >"$temp/full" ;;
	*) return 1 ;;
	esac
}

# unseen handles files without a tree: the agent's work must not look like a worktree without changes.
unseen() {
	files=
	if [ -e "$temp/full" ]; then
		note missed "no room for the files"
	else
		note missed "no tree of the files could be made: $(git write-tree 2>&1 >/dev/null | tail -n 1)"
	fi
}

# clean reports whether the branch is checked out and all files are as in its commit. It stores no objects, unlike git add,
# which stores files again that are as old as the index.
clean() {
	case "$at $pass $head $what" in
	"head first refs/heads/$branch all" | "head first refs/heads/$branch branch") ;;
	*) return 1 ;;
	esac
	[ -z "$refused" ] && [ -f "$GIT_INDEX_FILE" ] && [ ! -s "$temp/inner" ] && [ ! -s "$temp/modules" ] || return
	git -c status.renames=false status --porcelain=v2 --branch --untracked-files=normal --ignore-submodules=dirty >"$temp/status" 2>&1 || return
	{ read -r mark key commit && [ "$mark $key" = "# branch.oid" ] && read -r mark key line && [ "$mark $key" = "# branch.head" ] && ! read -r line; } <"$temp/status" && refs || return
	while read -r line; do
		[ "$line" = "$commit commit" ] && return # a branch may name a tag
	done <"$temp/named"
	return 1
}

# try sends the first commit that can be packed: of HEAD, its log, the branch, and the last import. In the first pass it
# stops at the first missing commit.
try() {
	lost= moved=
	[ "$what" = files ] && return
	for at in head log branch last; do
		case $at in
		head) name=$head ;;
		log) name=$([ ! -f "$private/logs/HEAD" ] || tail -n 1 "$private/logs/HEAD" | cut -d ' ' -f 2) ;;
		branch) name=refs/heads/$branch ;;
		*)
			[ -n "$lost" ] || note notes "the repository in the sandbox names no commit any more"
			name=$last
			;;
		esac
		[ -n "$name" ] || continue
		if clean; then send "$commit" ""; fi
		if both=$(git rev-parse "$name^{commit}" "$name^{tree}" 2>/dev/null); then
			commit=${both%%[!0-9a-f]*} tree=${both##*[!0-9a-f]}
		else
			[ $? -le 128 ] || exit 137 # a signal ended git, which says nothing about the commit
			moved=yes
			commit=$(git rev-parse -q --verify --end-of-options "$name") || continue
			lost=${lost:-$commit}
			[ $pass = first ] && return
			continue
		fi
		[ -f "$GIT_INDEX_FILE" ] || git read-tree "$commit"
		files=$(snapshot) || { ! full && rm -f "$GIT_INDEX_FILE" && git read-tree "$commit" && files=$(snapshot); } || unseen
		[ "$files" = "$tree" ] && files=
		send "$commit" "$files"
		if full; then
			rm -rf "$GIT_DIR"/objects/??
			note missed "no room for the files"
			send "$commit" ""
			printf 'no space is left for the commits: %s\n' "$(printf '%s\n' "$why" | tail -n 1)" >&2
			exit 1
		fi
		[ -n "$files" ] && [ "$commit" != "$last" ] && { rm -f "$GIT_INDEX_FILE"; git read-tree "$commit" && files=$(snapshot) && send "$commit" "$files"; }
		lost=${lost:-$commit} moved=yes
		[ $pass = first ] && return
	done
}

known=$*
head= why=
if [ -f "$private/HEAD" ]; then IFS= read -r head <"$private/HEAD"; fi
head=${head#ref: }
pass=first
try
pass=again
# The indexes of the agent's packs may be corrupt.
cp "$temp/store/info/alternates" "$GIT_DIR/objects/info/alternates"
rm -rf "$GIT_DIR"/objects/??
for folder in "$private"/objects/??; do
	[ -d "$folder" ] && ln -s "$folder" "$GIT_DIR/objects/${folder##*/}"
done
for pack in "$private"/objects/pack/*.pack; do
	[ -f "$pack" ] || continue
	name=$GIT_DIR/objects/pack/${pack##*/}
	ln -s "$pack" "$name" && git index-pack -o "${name%.pack}.idx" "$name" >/dev/null
done
try
# Nothing in the agent's repository is usable. The files still are.
[ "$what" = files ] || rm -f "$GIT_INDEX_FILE"
rm -rf "$GIT_DIR"/objects/?? "$GIT_DIR"/objects/pack/*
was=$lost
for commit in "" "$last" "$@"; do
	if [ -n "$commit" ]; then
		rm -f "$GIT_INDEX_FILE"
		git read-tree "$commit" || continue
	else
		[ -f "$GIT_INDEX_FILE" ] || continue
	fi
	files=$(snapshot) || continue
	[ "$files" = "$(git rev-parse "$last^{tree}")" ] && files=
	lost=$was
	send "$last" "$files"
done
exit 1
