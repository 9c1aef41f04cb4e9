#!/bin/sh
# Starts the server in Home Assistant's container, with the options of the app's page, as a user without rights. All that it
# keeps is in /data/xiaozhi, which Home Assistant backs up.
set -eu
user=65532
install -d -m 0700 /data/xiaozhi
chown -R $user:$user /data/xiaozhi # a backup may have been restored as root
install -m 0400 -o $user -g $user /data/options.json /run/xiaozhi-options.json
cd /data/xiaozhi
export HOME=/data/xiaozhi
unset SUPERVISOR_TOKEN HASSIO_TOKEN
exec setpriv --reuid=$user --regid=$user --clear-groups --no-new-privs \
	/usr/bin/xiaozhi serve --config /etc/xiaozhi/config.yaml --data /data/xiaozhi --homeassistant /run/xiaozhi-options.json
