set -euo pipefail
cat > doc <<END
here: $((6 * 7))
END
diff <(cat doc) <(echo "here: 42")
t=$(mktemp) d=$(mktemp -d)
trap 'rm -rf "$t" "$d"' EXIT
printf 'b\na\n' | sort > "$t"
cp "$t" "$d/copy"
mapfile -t lines < "$d/copy"
[[ ${lines[*]} == "a b" ]]
(exit 3) & wait $! || [[ $? == 3 ]]
echo data > /dev/null
