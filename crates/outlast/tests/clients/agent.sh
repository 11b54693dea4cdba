# The scripted agent of the client tests. The message "play NAME" has it print the lines of NAME.jsonl, with its run's id
# for every @@. After "play NAME gated" each line waits until the file that is named after the run holds a number that is
# not smaller than the line's. A "stubborn" one ignores SIGTERM.
read -r _ name gated stubborn
[ -z "$stubborn" ] || trap '' TERM
n=0
sed "s/@@/$OUTLAST_RUN_ID/g" "$SCRIPTS/$name.jsonl" | while IFS= read -r line; do
    n=$((n + 1))
    while [ -n "$gated" ]; do
        may=0
        [ ! -e "$GATES/$OUTLAST_RUN_ID" ] || read -r may <"$GATES/$OUTLAST_RUN_ID" || may=0
        [ "${may:-0}" -lt "$n" ] || break
        [ -d "$GATES" ] || exit 99
        sleep 0.02
    done
    printf '%s\n' "$line"
done
