# shellcheck shell=bash disable=SC2034
# A server with nginx, and a certificate that certbot has fetched.
dir=/etc/letsencrypt/archive/HOST
mkdir -p $dir
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=HOST -days 90 \
	-keyout $dir/privkey7.pem -out $dir/cert7.pem >/dev/null 2>&1 </dev/null
cp $dir/cert7.pem $dir/fullchain7.pem
with_policy 'include server'
