"""Nothing is lost in silence: the log's lines and what they count are all the kernel's records.

account.py RECORDS SLACK LOG: RECORDS is what the kernel counted. Each number below it is a line
of LOG (and of LOG.1, …), or counted by `dropped` or `lost`. A daemon that is killed counts what
it had in hand twice at most: so many, SLACK, may be counted beyond. Exit status 1 otherwise, and
where a line is no JSON or a record is there twice.
"""

import glob
import json
import sys

records, slack, log = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
ids, dropped, lost, broken, twice = set(), 0, 0, 0, 0
for name in glob.glob(log + "*"):
    with open(name, "rb") as lines:
        for line in lines:
            try:
                record = json.loads(line)
            except ValueError:
                broken += 1
                print(f"{name}: no JSON: {line[:120]}")
                continue
            if record["kind"] == "dropped":
                dropped += record["count"]
            elif record["kind"] == "lost":
                lost += record["count"]
            else:
                twice += record["id"] in ids
                ids.add(record["id"])
told = len(ids) + dropped + lost
print(f"{records} records: {len(ids)} in the log, {dropped} dropped, {lost} lost, "
      f"{told - records:+d}; {broken} broken lines, {twice} twice")
sys.exit(broken > 0 or twice > slack or not 0 <= told - records <= slack)
