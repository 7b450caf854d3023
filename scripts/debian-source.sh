#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Fetches the upstream tarball of a Debian source package of another suite, leaving the machine's own
# apt as it was: the package list, its state and its cache are private to this run.
#
#   scripts/debian-source.sh SUITE PACKAGE FOLDER
#
# The archive is the one the machine already uses: every entry of its lists, old style or deb822,
# that is Debian's own main component for the installed release, with the suite replaced.
set -eu
export LC_ALL=C

suite=$1
package=$2
folder=$3
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# shellcheck disable=SC1091
release=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
[ -n "$release" ] || {
    echo "debian-source: /etc/os-release names no VERSION_CODENAME" >&2
    exit 1
}

# apt itself reads both styles of list; it knows an entry's origin once its lists have been fetched.
# shellcheck disable=SC2016 # these are apt's variables
archives=$(apt-get indextargets --format '$(ORIGIN)|$(CODENAME)|$(COMPONENT)|$(REPO_URI)' |
    awk -F '|' -v release="$release" \
        '$1 == "Debian" && $2 == release && $3 == "main" && !seen[$4]++ { print $4 }')
[ -n "$archives" ] || {
    echo "debian-source: apt's lists have no Debian archive for $release (main)" >&2
    exit 1
}

private=$(mktemp -d)
trap 'rm -rf "$private"' EXIT
mkdir -p "$private/state/lists/partial" "$private/cache/archives/partial"
options=
if [ -e $keyring ]; then options="[signed-by=$keyring] "; fi

cd "$folder"
for archive in $archives; do
    echo "deb-src $options$archive $suite main" >"$private/sources.list"
    set -- -o Dir::State="$private/state" -o Dir::State::status=/var/lib/dpkg/status \
        -o Dir::Cache="$private/cache" -o Dir::Etc::sourcelist="$private/sources.list" \
        -o Dir::Etc::sourceparts=/dev/null -o APT::Sandbox::User=root
    echo "debian-source: $package from $archive $suite"
    if apt-get "$@" update && apt-get "$@" source --download-only --tar-only "$package"; then
        exit 0
    fi
done
echo "debian-source: $package of $suite could not be fetched" >&2
exit 1
